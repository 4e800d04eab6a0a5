"use strict";
// Everything recorded goes into the page as text nodes only; nothing here reads HTML from a string.
(() => {
  const PER_PAGE = 50;
  const $ = (id) => document.getElementById(id);
  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined) element.setAttribute(key, value);
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };
  // Control characters and overrides of direction would change how the text around them reads.
  const seen = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  const number = (value) => (value === null || value === undefined ? "" : value.toFixed(3));

  async function unpacked(id) {
    const text = $(id).textContent;
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // ---------------------------------------------------------------- charts

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  const NARROW = 560;

  function themed(form, width) {
    const style = getComputedStyle(document.documentElement);
    const [ink, line, card] = ["--ink", "--line", "--card"].map((name) => style.getPropertyValue(name).trim());
    const narrow = width < NARROW;
    const own = structuredClone(form.layout);
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line, fixedrange: true, automargin: true };
    const size = narrow ? 12 : 13;
    for (const key of Object.keys(own)) {
      if (!/^[xy]axis/.test(key)) continue;
      own[key] = { ...axis, ...own[key] };
      if (own[key].title) own[key].title = { standoff: 8, ...own[key].title, font: { size } };
    }
    if (narrow && own.yaxis && own.yaxis.ticktext) {
      own.yaxis.ticktext = own.yaxis.ticktext.map((name) => folded(name));
      own.height *= 1.15;
    }
    const entries = form.data.filter((trace) => trace.name);
    const shows = entries.length > 1;
    const lines = shows ? Math.ceil((entries.reduce((sum, trace) => sum + 48 + 7 * trace.name.length, 0) * 1.15) / width) : 0;
    own.height += 22 * lines + (shows ? 14 : 0);
    return {
      margin: { l: 10, r: 14, t: 10, b: 10 }, ...own, showlegend: shows,
      legend: { orientation: "h", traceorder: "normal", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size }, itemclick: false, itemdoubleclick: false },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { family: getComputedStyle(document.body).fontFamily, color: ink, size },
      hoverlabel: { bgcolor: card, bordercolor: line, font: { color: ink }, align: "left" },
    };
  }

  // A name in two lines where the screen is narrow, broken at a blank near its middle.
  function folded(name) {
    if (name.length < 18) return name;
    const blanks = [...name.matchAll(/ /g)].map((match) => match.index);
    if (!blanks.length) return name;
    const at = blanks.reduce((best, i) => (Math.abs(i - name.length / 2) < Math.abs(best - name.length / 2) ? i : best));
    return `${name.slice(0, at)}<br>${name.slice(at + 1)}`;
  }

  function draw(place, form) {
    drawn.set(place, form);
    const data = structuredClone(form.data);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    for (const trace of data) if (trace.type === "heatmap" || trace.type === "sankey") trace.textfont = { color: ink };
    place.style.minWidth = `${form.least_width || 0}px`;
    const layout = themed(form, place.clientWidth);
    place.style.minHeight = `${layout.height}px`;
    return window.Plotly.react(place, data, layout, { displayModeBar: false, responsive: false, scrollZoom: false });
  }

  async function charts(views) {
    const places = [...document.querySelectorAll("[data-chart]")];
    if (!places.length) return;
    const code = await unpacked("library");
    document.head.append(make("script", {}, code));
    for (const place of places) {
      const own = views[place.dataset.chart];
      const select = document.querySelector(`[data-picks="${place.dataset.chart}"]`);
      if (select) select.addEventListener("change", () => draw(place, own[Number(select.value)]));
    }
    const pending = new Set(places);
    const begin = (place) => {
      if (!pending.delete(place)) return;
      const select = document.querySelector(`[data-picks="${place.dataset.chart}"]`);
      draw(place, views[place.dataset.chart][select ? Number(select.value) : 0]);
    };
    const watcher = new IntersectionObserver(
      (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => begin(entry.target)),
      { rootMargin: "400px" },
    );
    places.forEach((place) => watcher.observe(place));
    window.addEventListener("beforeprint", () => places.forEach(begin));
    const again = () => drawn.forEach((form, place) => draw(place, form));
    dark.addEventListener("change", again);
    let width = document.documentElement.clientWidth;
    let waiting;
    window.addEventListener("resize", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        if (document.documentElement.clientWidth !== width) again();
        width = document.documentElement.clientWidth;
      }, 150);
    });
    document.documentElement.dataset.charts = "ready";
  }

  // ---------------------------------------------------------------- the list

  function list(data) {
    const at = Object.fromEntries(data.columns.map((name, i) => [name, i]));
    const rows = data.rows.map((row, i) => ({ row, i, text: null }));
    const words = (line) => (line.text ??= line.row.slice(0, 7).filter((value) => value !== null).join("\n").toLowerCase());
    let shown = rows;
    let page = 0;

    const options = (id, name) => {
      const counts = new Map();
      for (const { row } of rows) if (row[at[name]] !== null) counts.set(row[at[name]], (counts.get(row[at[name]]) || 0) + 1);
      const sorted = [...counts].sort((a, b) => b[1] - a[1] || String(a[0]).localeCompare(String(b[0])));
      for (const [value, n] of sorted) $(id).append(make("option", { value }, `${seen(value)} (${n.toLocaleString("en")})`));
      if (!sorted.length) $(id).parentElement.hidden = true;
    };
    options("pick-verdict", "verdict");
    options("pick-place", "place");
    options("pick-kind", "kind");

    function select() {
      const wanted = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const [verdict, place, kind] = ["pick-verdict", "pick-place", "pick-kind"].map((id) => $(id).value);
      shown = rows.filter(
        (line) =>
          (!verdict || line.row[at.verdict] === verdict) && (!place || line.row[at.place] === place) &&
          (!kind || line.row[at.kind] === kind) && wanted.every((word) => words(line).includes(word)),
      );
      const order = $("pick-order").value;
      const last = (value) => (value === null ? Infinity : value);
      if (order === "worst") shown.sort((a, b) => last(a.row[at.final]) - last(b.row[at.final]) || a.i - b.i);
      const fall = ({ row }) => (row[at.final] === null ? -Infinity : row[at.candidates] - row[at.final]);
      if (order === "dropped") shown.sort((a, b) => fall(b) - fall(a) || a.i - b.i);
      page = 0;
      show();
    }

    function line({ row, i }) {
      const verdict = row[at.verdict];
      const name = row[at.question] ?? row[at.question_id] ?? `query ${row[at.query_id]}`;
      const button = make("button", { type: "button", "data-open": i }, make("span", { dir: "auto", class: "asked" }, seen(name)));
      button.addEventListener("click", () => open(i));
      const ids = [row[at.question_id], row[at.kind]].filter(Boolean).map(seen).join(" · ");
      const cell = (text, heading, attributes) => make("td", { "data-name": heading, ...attributes }, text);
      return make("tr", {},
        make("td", {}, button, ids ? make("small", { dir: "auto" }, ids) : null),
        cell((verdict || "").replaceAll("_", " "), null, { class: verdict }),
        cell(seen(row[at.place] ?? ""), "where", { dir: "auto" }),
        cell(seen(row[at.reasons] ?? "").replaceAll("_", " "), "why"),
        cell(number(row[at.candidates]), "candidates", { class: "n" }),
        cell(number(row[at.final]), "final", { class: "n" }));
    }

    function show() {
      const n = Math.max(1, Math.ceil(shown.length / PER_PAGE));
      $("list").tBodies[0].replaceChildren(...shown.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map(line));
      $("found").textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} queries`;
      $("page-now").textContent = `page ${page + 1} of ${n}`;
      $("earlier").disabled = page === 0;
      $("later").disabled = page >= n - 1;
      $("pages").hidden = n === 1;
    }

    const turn = (by) => { page += by; show(); $("questions").scrollIntoView(); };
    $("earlier").addEventListener("click", () => turn(-1));
    $("later").addEventListener("click", () => turn(1));
    let waiting;
    $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(select, 120); });
    for (const id of ["pick-verdict", "pick-place", "pick-kind", "pick-order"]) $(id).addEventListener("change", select);
    $("filters").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); select(); });

    // -------------------------------------------------------------- one question

    const blocks = new Map();
    async function details(i) {
      const block = Math.floor(i / data.block);
      if (!blocks.has(block)) blocks.set(block, unpacked(`block-${block}`).then(JSON.parse));
      return (await blocks.get(block))[i % data.block];
    }

    async function open(i) {
      const row = rows[i].row;
      $("why-body").replaceChildren(...why(row, await details(i)));
      if (!$("why").open) $("why").showModal();
      $("why").scrollTop = 0;
      history.replaceState(null, "", `#query=${row[at.query_id]}`);
    }

    function why(row, known) {
      const verdict = row[at.verdict];
      const asked = row[at.question] === null ? "(its text was not captured)" : seen(row[at.question]);
      const facts = [`query ${row[at.query_id]}`, row[at.question_id], `${known.at.slice(0, 19).replace("T", " ")} UTC`, known.status === "ok" ? null : known.status];
      const parts = [
        make("h2", { id: "why-title", dir: "auto" }, asked),
        make("p", { class: "said" }, facts.filter(Boolean).map(seen).join(" · ")),
      ];
      if (["kept", "lost", "unobserved"].includes(verdict)) {
        const where = row[at.place] ? ` ${seen(row[at.place])}` : "";
        parts.push(make("p", {}, make("strong", { class: verdict }, verdict.toUpperCase() + where),
          `  candidate recall ${number(row[at.candidates])}, final-context recall ${number(row[at.final])}`));
      }
      parts.push(make("p", { class: "said" }, seen(known.head)));
      for (const piece of known.evidence) parts.push(...evidence(piece));
      return parts;
    }

    function evidence(piece) {
      const where = piece.doc === null ? "" : seen(piece.doc);
      const span = piece.at ? ` [${piece.at[0]}, ${piece.at[1]})` : "";
      const parts = [make("h3", {}, "Evidence ", make("bdi", {}, seen(piece.id))),
        make("p", { class: "said" }, `${piece.level} in `, make("bdi", {}, where), span, seen(piece.role))];
      parts.push(
        piece.passage === null
          ? make("p", { class: "said" }, "(text not captured)")
          : make("blockquote", { dir: "auto" }, around(piece.before, "…", ""),
            make("mark", {}, seen(piece.passage)), around(piece.after, "", "…")),
      );
      if (piece.state) parts.push(make("p", { class: "note" }, `Kept apart: ${piece.state}.`));
      if (piece.places.length) parts.push(places(piece));
      parts.push(make("ul", { class: "told" }, ...piece.told.map((told) => sentence(told, piece.told.length > 1))));
      if (piece.label) parts.push(make("p", { class: "said" }, `Label: ${seen(piece.label)}`));
      return parts;
    }

    // Shorter than what was asked for: the document begins or ends there.
    const around = (text, before, after) => (!text ? "" : text.length < 80 ? seen(text) : before + seen(text) + after);

    function sentence([said, verdict, stage, proof, notes, change], several) {
      return make("li", {},
        make("span", { class: verdict, dir: "auto" }, `→ ${several && stage ? `${seen(stage)}: ` : ""}${seen(said)}`),
        proof ? make("span", { class: "said" }, `  (${seen(proof)})`) : null,
        ...notes.map((note) => make("div", { class: "said" }, `Note: ${seen(note)}.`)),
        change ? make("div", {}, seen(change)) : null);
    }

    const LAYERS = { source: "source", text: "parsed text", chunks: "chunks", index: "index" };

    function places(piece) {
      const head = ["stage", "kind", "list", "rank", "score", "coverage", "", "chunk"];
      const body = piece.places.map((values) => {
        const p = Object.fromEntries(data.place_columns.map((name, i) => [name, values[i]]));
        const ends = p.lost_here !== null;
        const faint = p.is_on_path === false || (!p.coverage && !p.coverage_in);
        const remarks = [p.is_complete === false ? "list incomplete" : null, p.status && p.status !== "ok" ? p.status : null,
          { in: "← ends here", after: "← lost after this" }[p.lost_here]];
        const cells = [p.stage ?? LAYERS[p.kind] ?? p.kind, p.stage === null ? "" : p.kind, sizes(p), ranks(p),
          p.score === null ? "" : Number(p.score.toPrecision(4)).toString(), coverage(p), remarks.filter(Boolean).join(" "), p.chunk_id ?? ""];
        return make("tr", { class: ends ? "ends" : faint ? "faint" : null },
          ...cells.map((text, i) => make("td", { class: i > 1 && i < 6 ? "n" : null, dir: i === 0 || i === 7 ? "auto" : null }, seen(text))));
      });
      return make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Stages of evidence ${seen(piece.id)}` },
        make("table", {},
          make("thead", {}, make("tr", {}, ...head.map((name, i) => make("th", { scope: "col", class: i > 1 && i < 6 ? "n" : null }, name)))),
          make("tbody", {}, ...body)));
    }

    const sizes = (p) => (p.n_in === null ? (p.n_out === null ? "" : `${p.n_out}`) : `${p.n_in}→${p.n_out ?? ""}`);
    function ranks(p) {
      const out = p.rank_out === null ? "–" : p.is_kept === false ? `(${p.rank_out})` : `${p.rank_out}`;
      if (p.stage === null) return p.rank_out === null ? "" : out;
      if (p.n_out === null && p.rank_out === null) return p.rank_in === null ? "–" : `${p.rank_in}→`;
      return p.rank_in === null ? out : `${p.rank_in}→${out}`;
    }
    function coverage(p) {
      if (p.coverage === null) return number(p.coverage_in);
      const more = p.coverage_possible !== null && p.coverage_possible - p.coverage > 0.0005;
      return number(p.coverage) + (more ? `..${number(p.coverage_possible)}` : "");
    }

    $("why").addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
    $("why").addEventListener("click", (event) => { if (event.target === $("why")) $("why").close(); });
    show();
    const named = /^#query=(\d+)$/.exec(location.hash);
    if (named) {
      const i = rows.findIndex(({ row }) => row[at.query_id] === named[1]);
      if (i >= 0) open(i);
    }
    document.documentElement.dataset.list = "ready";
  }

  async function start() {
    if (typeof DecompressionStream === "undefined") {
      const said = "This browser cannot unpack the charts and the list; the tables are complete. Any browser from 2023 on can.";
      document.querySelector("main").prepend(make("p", { class: "serious" }, said));
      return;
    }
    const data = JSON.parse(await unpacked("data"));
    if ($("list")) list(data);
    await charts(data.views);
  }
  start();
})();
