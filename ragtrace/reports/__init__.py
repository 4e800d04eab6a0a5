"""Named queries over the store, run and rendered. Reads views; computes no number that SQL defines."""
