"use strict";
(() => {
  const spec = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const HIGH = 24;
  // Browsers cannot make elements of any height.
  const TALLEST = 8e6;
  const make = (tag, more = {}) => Object.assign(document.createElement(tag), more);

  /** A number as the table shows it. */
  function shown(x) {
    if (x === null) return "NaN";
    if (typeof x === "string") return x;
    const whole = String(x);
    return whole.length <= 12 ? whole : String(Number(x.toPrecision(9)));
  }
  /** A value to compare by. */
  const value = (x) => (x === null ? NaN : x === "inf" ? Infinity : x === "-inf" ? -Infinity : x);

  const { names, columns, texts } = spec;
  const n = columns.length ? columns[0].length : 0;
  let rows = Uint32Array.from({ length: n }, (_, i) => i);
  const sorted = { column: -1, down: false };
  const filters = names.map(() => null);

  if (spec.title) main.append(make("h1", { textContent: spec.title }));
  const count = make("p", { className: "help", id: "count" });
  const scroll = make("div", { id: "scroll", tabIndex: 0 });
  scroll.setAttribute("role", "table");
  scroll.setAttribute("aria-rowcount", n + 1);
  const head = make("div", { id: "head" });
  const body = make("div", { id: "body" });
  const place = make("div", { id: "rows" });
  body.style.position = "relative";
  body.append(place);
  scroll.append(head, body);
  main.append(count, scroll);

  // Columns are as wide as what stands in them.
  const widths = names.map((name, c) => {
    let most = name.length + 3;
    for (let i = 0; i < n; i += Math.max(1, Math.floor(n / 2000))) {
      const x = columns[c][i];
      most = Math.max(most, texts[c] ? x.length : shown(x).length);
    }
    return Math.min(60, Math.max(10, most)) * 8.2 + 18 + "px";
  });
  const line = (parent, name = "line") => parent.appendChild(make("div", { className: name }));
  const titles = line(head);
  titles.setAttribute("role", "row");
  const inputs = line(head, "line filters");
  const buttons = names.map((name, c) => {
    const cell = make("div", { className: texts[c] ? "text" : "number" });
    cell.setAttribute("role", "columnheader");
    cell.style.width = widths[c];
    const button = make("button", { textContent: name, title: "sort by " + name });
    button.addEventListener("click", () => sort(c));
    cell.append(button);
    titles.append(cell);
    const hold = make("div");
    hold.style.width = widths[c];
    const input = make("input", { placeholder: texts[c] ? "part of it" : ">0, 1..2" });
    input.setAttribute("aria-label", "filter of " + name);
    input.addEventListener("input", () => {
      const test = filter(input.value.trim(), c);
      input.classList.toggle("wrong", test === undefined);
      filters[c] = test || null;
      choose();
    });
    hold.append(input);
    inputs.append(hold);
    return button;
  });

  /** The test that a filter asks for: null for none, undefined where it cannot be read. */
  function filter(text, c) {
    if (text === "") return null;
    const data = columns[c];
    if (texts[c]) {
      const low = text.toLowerCase();
      return (i) => data[i].toLowerCase().includes(low);
    }
    const number = "[-+]?(?:inf|\\d+\\.?\\d*(?:e[-+]?\\d+)?|\\.\\d+(?:e[-+]?\\d+)?)";
    const read = (t) => value(t.replace("+", "")) === Infinity ? Infinity : t === "-inf" ? -Infinity : Number(t);
    const range = text.match(new RegExp(`^(${number})\\s*\\.\\.\\s*(${number})$`, "i"));
    if (range) {
      const [lo, hi] = [read(range[1]), read(range[2])];
      return (i) => value(data[i]) >= lo && value(data[i]) <= hi;
    }
    const one = text.match(new RegExp(`^(>=|<=|!=|>|<|=)?\\s*(${number})$`, "i"));
    if (!one) return text.toLowerCase() === "nan" ? (i) => Number.isNaN(value(data[i])) : undefined;
    const x = read(one[2]);
    const tests = {
      ">": (y) => y > x, ">=": (y) => y >= x, "<": (y) => y < x, "<=": (y) => y <= x,
      "!=": (y) => y !== x, "=": (y) => y === x,
    };
    const test = tests[one[1] || "="];
    return (i) => test(value(data[i]));
  }

  function sort(c) {
    if (sorted.column !== c) Object.assign(sorted, { column: c, down: false });
    else if (!sorted.down) sorted.down = true;
    else sorted.column = -1;
    buttons.forEach((button, k) => {
      const mark = k !== sorted.column ? "" : sorted.down ? " ▼" : " ▲";
      button.textContent = names[k] + mark;
      const order = mark === "" ? "none" : sorted.down ? "descending" : "ascending";
      button.parentElement.setAttribute("aria-sort", order);
    });
    choose();
  }

  /** The rows that the filters let through, in the order asked for. */
  function choose() {
    const tests = filters.filter((test) => test);
    const kept = [];
    for (let i = 0; i < n; i += 1) if (tests.every((test) => test(i))) kept.push(i);
    rows = Uint32Array.from(kept);
    const { column, down } = sorted;
    if (column >= 0) {
      const data = columns[column];
      const sign = down ? -1 : 1;
      if (texts[column]) rows.sort((a, b) => sign * data[a].localeCompare(data[b]) || a - b);
      else {
        rows.sort((a, b) => {
          const [x, y] = [value(data[a]), value(data[b])];
          // What is no number comes last either way.
          if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
          return x === y ? a - b : sign * (x < y ? -1 : 1);
        });
      }
    }
    scroll.scrollTop = 0;
    show();
  }

  function show() {
    const total = rows.length * HIGH;
    const tall = Math.min(total, TALLEST);
    body.style.height = tall + "px";
    const view = Math.max(HIGH, scroll.clientHeight - head.offsetHeight);
    const fit = Math.ceil(view / HIGH) + 1;
    const part = tall > view ? Math.min(1, scroll.scrollTop / (tall - view)) : 0;
    const first = tall === total
      ? Math.floor(scroll.scrollTop / HIGH)
      : Math.round(part * Math.max(0, rows.length - fit + 2));
    place.replaceChildren();
    place.style.transform = `translateY(${tall === total ? first * HIGH : scroll.scrollTop}px)`;
    for (let k = first; k < Math.min(rows.length, first + fit); k += 1) {
      const row = line(place);
      row.setAttribute("role", "row");
      row.setAttribute("aria-rowindex", k + 2);
      names.forEach((_, c) => {
        const x = columns[c][rows[k]];
        const cell = make("div", { className: texts[c] ? "text" : "number", textContent: texts[c] ? x : shown(x) });
        cell.setAttribute("role", "cell");
        cell.style.width = widths[c];
        if (String(x) !== cell.textContent && x !== null) cell.title = String(x);
        row.append(cell);
      });
    }
    const seen = tall === total ? Math.round((scroll.scrollTop + view) / HIGH) : first + fit - 2;
    const last = Math.min(rows.length, Math.max(first + 1, seen));
    const of = rows.length === n ? `${n}` : `${rows.length} (of ${n} in all)`;
    count.textContent = rows.length
      ? `rows ${first + 1} to ${last} of ${of}. A click on a name sorts; filters: >0, <=1e-3, 1..2, =5, !=0, NaN.`
      : `no row of ${n} is left`;
  }
  scroll.addEventListener("scroll", show);
  window.addEventListener("resize", show);
  show();
})();
