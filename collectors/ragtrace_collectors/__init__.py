"""Processes that bring data in from elsewhere: the same spool, the same frames."""
