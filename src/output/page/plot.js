"use strict";
(() => {
  const spec = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const FONT = spec.serif ? 'Times, "Times New Roman", serif' : "Helvetica, Arial, sans-serif";
  const SIZE = spec.font || 14;
  // Nobody reads smaller ones.
  const letters = (size) => Math.max(8, size);
  const UP = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const raised = (n) => "10" + [...String(n)].map((c) => UP[c]).join("");
  // Marks around what stands above or below the line, as the drawing program has them.
  const [RISE, FALL, END] = ["\ue000", "\ue001", "\ue002"];
  const flat = (label) => label.replaceAll(RISE, "^").replaceAll(FALL, "_").replaceAll(END, "");

  /** A label cut into pieces: text, height above the line and size in parts of a letter's. */
  function pieces(label) {
    const found = [];
    const heights = [[0, 1]];
    for (const c of label) {
      const [up, scale] = heights[heights.length - 1];
      const last = found[found.length - 1];
      const to = c === RISE ? spec.above : c === FALL ? spec.below : null;
      if (to) heights.push([up + to[0] * scale, to[1] * scale]);
      else if (c === END) heights.length > 1 && heights.pop();
      else if (last && last[1] === up && last[2] === scale) last[0] += c;
      else found.push([c, up, scale]);
    }
    return found;
  }

  const finite = (x) => x !== null && Number.isFinite(x);

  /** A number in words that people read: seven digits, powers of ten raised. */
  function shown(x, digits = 7) {
    if (!finite(x)) return "none";
    if (x === 0) return "0";
    const size = Math.abs(x);
    const text = size >= 1e6 || size < 1e-4 ? x.toExponential(digits - 1) : x.toPrecision(digits);
    const [mantissa, power] = text.split("e");
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    if (power === undefined) return short;
    const ten = raised(Number(power));
    return short === "1" ? ten : short === "-1" ? "-" + ten : short + "·" + ten;
  }

  /** Where an axis is marked, in the units that it is drawn in (logarithms on a logarithmic one), with texts. */
  function ticks(lo, hi, log, most) {
    const span = hi - lo;
    if (!(span > 0)) return [];
    const found = [];
    if (log && span > 0.7) {
      const step = Math.max(1, Math.ceil(span / most));
      const parts = span < 3 && step === 1 ? [1, 2, 5] : [1];
      for (let p = Math.floor(lo); p <= hi; p += 1) {
        if (((p % step) + step) % step !== 0) continue;
        for (const part of parts) {
          const at = p + Math.log10(part);
          if (at < lo - 1e-9 * span || at > hi + 1e-9 * span) continue;
          const text = p > -2 && p < 4 ? shown(part * 10 ** p, 3) : part === 1 ? raised(p) : part + "·" + raised(p);
          found.push([at, text]);
        }
      }
      return found;
    }
    const [a, b] = log ? [10 ** lo, 10 ** hi] : [lo, hi];
    const rough = (b - a) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * (1 - 1e-9));
    const digits = Math.min(15, Math.max(1, Math.ceil(Math.log10(Math.max(Math.abs(a), Math.abs(b)) / step) + 1)));
    for (let k = Math.ceil(a / step - 1e-9); k <= b / step + 1e-9; k += 1) {
      const at = k * step;
      found.push([log ? Math.log10(at) : at, shown(k === 0 ? 0 : at, digits + 1)]);
    }
    return found;
  }

  class Panel {
    constructor(place, what, letter) {
      this.what = what;
      this.letter = letter;
      this.hidden = new Set();
      this.canvas = document.createElement("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", flat(what.title || what.ylabel || "plot"));
      this.values = document.createElement("div");
      this.values.className = "values";
      this.mark = document.createElement("div");
      this.mark.className = "mark";
      place.append(this.canvas, this.mark, this.values);
      // Of rising abscissae the places in view are found without looking at all.
      for (const curve of what.curves || []) {
        curve.rising = curve.x.every((x, i) => x !== null && (i === 0 || x >= curve.x[i - 1]));
      }
      this.pen = this.canvas.getContext("2d");
      this.home();
      this.listen();
    }

    // ------------------------------------------------------------------ what is seen
    curves() {
      return (this.what.curves || []).filter((_, i) => !this.hidden.has(i));
    }
    unit(x, axis) {
      return this.what.log[axis] ? (x > 0 ? Math.log10(x) : NaN) : x;
    }
    number(u, axis) {
      return this.what.log[axis] ? 10 ** u : u;
    }

    /** The whole of the data. */
    home() {
      const { what } = this;
      this.view = [what.x.map((x) => this.unit(x, 0)), this.heights(false), this.heights(true)];
    }
    heights(right) {
      const { what } = this;
      const axis = right ? 2 : 1;
      if (!right && what.y) return what.y.map((y) => this.unit(y, 1));
      let [lo, hi] = [Infinity, -Infinity];
      const take = (y) => {
        const u = y === null ? NaN : this.unit(y, axis);
        if (Number.isFinite(u)) [lo, hi] = [Math.min(lo, u), Math.max(hi, u)];
      };
      for (const curve of this.curves()) {
        if (curve.right !== right) continue;
        if (curve.style === "bars") take(0);
        curve.y.forEach((y, i) => {
          const x = curve.x[i];
          if (x === null || (what.x_given && (x < what.x[0] || x > what.x[1]))) return;
          take(y);
          const e = curve.error ? curve.error[i] : 0;
          if (e && y !== null) {
            take(y + e);
            take(this.low(y, e, axis));
          }
        });
      }
      if (!(lo <= hi)) return [0, 1];
      const pad = hi > lo ? 0.05 * (hi - lo) : Math.abs(lo) * 0.1 || 1;
      // Bars stand on the axis.
      const bars = this.curves().some((curve) => curve.style === "bars" && curve.right === right);
      return [bars && lo === 0 ? 0 : lo - pad, bars && hi === 0 ? 0 : hi + pad];
    }
    /** The lower end of an error: on a logarithmic axis it would be infinitely far. */
    low(y, e, axis) {
      return y - (this.what.log[axis] ? Math.min(e, 0.9 * y) : e);
    }

    px(u) {
      const [lo, hi] = this.view[0];
      return this.left + ((u - lo) / (hi - lo)) * this.wide;
    }
    py(u, right) {
      const [lo, hi] = this.view[right ? 2 : 1];
      return this.top + (1 - (u - lo) / (hi - lo)) * this.high;
    }
    at(curve, i) {
      const [x, y] = [curve.x[i], curve.y[i]];
      if (x === null || y === null) return null;
      const [u, v] = [this.unit(x, 0), this.unit(y, curve.right ? 2 : 1)];
      return Number.isFinite(u) && Number.isFinite(v) ? [this.px(u), this.py(v, curve.right)] : null;
    }

    /** The first place of a curve that may lie between two pixels, and the one behind the last. */
    between(curve, a, b) {
      const n = Math.min(curve.x.length, curve.y.length);
      if (!curve.rising) return [0, n];
      const [lo, hi] = this.view[0];
      const value = (pixel) => this.number(lo + ((pixel - this.left) / this.wide) * (hi - lo), 0);
      const search = (x) => {
        let [from, to] = [0, n];
        while (from < to) {
          const middle = (from + to) >> 1;
          if (curve.x[middle] < x) from = middle + 1;
          else to = middle;
        }
        return from;
      };
      return [Math.max(0, search(value(a)) - 1), Math.min(n, search(value(b)) + 1)];
    }

    // ------------------------------------------------------------------ drawing
    resize(width, height) {
      const dots = window.devicePixelRatio || 1;
      [this.width, this.height] = [width, height];
      [this.canvas.width, this.canvas.height] = [Math.round(width * dots), Math.round(height * dots)];
      this.canvas.style.width = width + "px";
      this.canvas.style.height = height + "px";
      this.pen.setTransform(dots, 0, 0, dots, 0, 0);
      this.draw();
    }
    text(content, x, y, align = "center", base = "middle", size = SIZE, bold = "") {
      const { pen } = this;
      const whole = this.measure(content, size, bold);
      let from = x - (align === "center" ? whole / 2 : align === "right" ? whole : 0);
      [pen.textAlign, pen.textBaseline] = ["left", base];
      for (const [part, up, scale] of pieces(content)) {
        pen.font = `${bold} ${letters(size * scale)}px ${FONT}`;
        // Small letters stand on the line of the large ones.
        const down = base === "middle" ? (1 - scale) * 0.36 : base === "top" ? (1 - scale) * 0.8 : 0;
        pen.fillText(part, from, y + (down - up) * size);
        from += pen.measureText(part).width;
      }
    }
    measure(content, size = SIZE, bold = "") {
      return pieces(content).reduce((sum, [part, , scale]) => {
        this.pen.font = `${bold} ${letters(size * scale)}px ${FONT}`;
        return sum + this.pen.measureText(part).width;
      }, 0);
    }
    line(...points) {
      const { pen } = this;
      pen.beginPath();
      points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.stroke();
    }

    draw() {
      const { what, pen } = this;
      const small = SIZE * 0.9;
      const hasRight = (what.curves || []).some((curve) => curve.right);
      const widest = (list) => Math.max(0, ...list.map(([, text]) => this.measure(text, small)));
      this.top = 12 + (what.title ? SIZE * 1.8 : 0);
      this.high = Math.max(40, this.height - this.top - 10 - SIZE * 2 - (what.xlabel ? SIZE * 1.5 : 0));
      const rows = Math.max(3, Math.min(9, Math.floor(this.high / 45)));
      const marks = ticks(...this.view[1], what.log[1], rows);
      const rightMarks = hasRight ? ticks(...this.view[2], what.log[2], rows) : [];
      this.left = 14 + widest(marks) + (what.ylabel ? SIZE * 1.7 : 0);
      let margin = 16;
      if (hasRight) margin += widest(rightMarks) + SIZE * 1.8;
      const names = what.legend ? what.curves.map((curve) => ["", curve.name]) : [];
      const legend = names.length ? widest(names) + 34 : 0;
      let scale = [];
      if (what.map) {
        const map = what.map;
        // One number for a map of one colour.
        scale = map.high > map.low ? ticks(map.low, map.high, false, rows) : [[map.low, shown(map.low)]];
        margin += 30 + Math.max(widest(scale), this.measure(map.label, small) - 20);
      }
      this.wide = Math.max(40, this.width - this.left - margin - legend);
      this.right = this.left + this.wide;
      pen.clearRect(0, 0, this.width, this.height);
      pen.fillStyle = "#222";
      pen.lineWidth = 1;

      // Grid and marks.
      const bottom = this.top + this.high;
      const grid = what.map ? "rgba(0,0,0,0)" : "#e4e4e4";
      let below = ticks(...this.view[0], what.log[0], Math.max(3, Math.min(10, Math.floor(this.wide / 80))));
      if (what.categories.length) below = what.categories.map((name, i) => [i + 1, name]);
      if (what.ticks.length) below = what.ticks.map(([x, name]) => [this.unit(x, 0), name]);
      let end = -Infinity;
      for (const [u, name] of below) {
        const x = this.px(u);
        if (!(x > this.left - 0.5 && x < this.right + 0.5)) continue;
        pen.strokeStyle = what.ticks.length ? "#999" : grid;
        this.line([x, this.top], [x, bottom]);
        pen.strokeStyle = "#222";
        this.line([x, bottom], [x, bottom + 4]);
        const half = this.measure(name, small) / 2;
        // Names that would run into each other are left out.
        if (x - half < end + 3) continue;
        end = x + half;
        this.text(name, x, bottom + 7, "center", "top", small);
      }
      for (const [u, name] of marks) {
        const y = this.py(u, false);
        pen.strokeStyle = grid;
        this.line([this.left, y], [this.right, y]);
        pen.strokeStyle = "#222";
        this.line([this.left - 4, y], [this.left, y]);
        this.text(name, this.left - 7, y, "right", "middle", small);
      }
      for (const [u, name] of rightMarks) {
        const y = this.py(u, true);
        pen.strokeStyle = "#222";
        this.line([this.right, y], [this.right + 4, y]);
        this.text(name, this.right + 7, y, "left", "middle", small);
      }
      if (what.title) this.text(what.title, this.left + this.wide / 2, 10 + SIZE * 0.6, "center", "middle", SIZE * 1.15, "bold");
      if (what.xlabel) this.text(what.xlabel, this.left + this.wide / 2, this.height - 6, "center", "alphabetic");
      const turned = (content, x) => {
        pen.save();
        pen.translate(x, this.top + this.high / 2);
        pen.rotate(-Math.PI / 2);
        this.text(content, 0, 0);
        pen.restore();
      };
      if (what.ylabel) turned(what.ylabel, 4 + SIZE * 0.6);
      if (hasRight) turned(what.right_label, this.right + widest(rightMarks) + SIZE * 1.4);
      if (this.letter) this.text(`(${this.letter})`, 4, 4, "left", "top", SIZE * 1.1, "bold");

      // The data, clipped at the axes.
      pen.save();
      pen.beginPath();
      pen.rect(this.left, this.top, this.wide, this.high);
      pen.clip();
      if (what.map) this.drawMap();
      (what.curves || []).forEach((curve, i) => {
        if (!this.hidden.has(i)) this.drawCurve(curve);
      });
      pen.restore();
      pen.strokeStyle = "#222";
      pen.strokeRect(this.left, this.top, this.wide, this.high);
      if (what.map) this.drawScale(scale, small);
      this.names = [];
      if (legend) {
        const x = this.width - legend;
        what.curves.forEach((curve, i) => {
          const y = this.top + 10 + i * (SIZE + 6);
          pen.globalAlpha = this.hidden.has(i) ? 0.3 : 1;
          pen.strokeStyle = pen.fillStyle = curve.colour;
          if (curve.style === "bars") pen.fillRect(x, y - 5, 18, 10);
          else if (curve.style !== "points") {
            pen.lineWidth = 1.6;
            this.line([x, y], [x + 18, y]);
          }
          if (curve.style === "points" || curve.style === "both") this.dot(x + 9, y, 3);
          pen.fillStyle = "#222";
          pen.lineWidth = 1;
          this.text(curve.name, x + 24, y, "left", "middle", small);
          pen.globalAlpha = 1;
          this.names.push([x, y - SIZE / 2 - 3, legend, SIZE + 6]);
        });
      }
    }
    dot(x, y, radius) {
      const { pen } = this;
      pen.beginPath();
      pen.arc(x, y, radius, 0, 2 * Math.PI);
      pen.fill();
    }

    drawCurve(curve) {
      const { pen } = this;
      const axis = curve.right ? 2 : 1;
      pen.strokeStyle = pen.fillStyle = curve.colour;
      const [first, behind] = this.between(curve, this.left, this.right);
      const ends = (i) => {
        const [y, e] = [curve.y[i], curve.error[i] || 0];
        return [this.low(y, e, axis), y + e].map((end) => this.py(this.unit(end, axis), curve.right));
      };
      if (curve.style === "bars") return this.drawBars(curve, ends);
      const pieces = [];
      let piece = [];
      for (const i of this.shownPlaces(curve, first, behind)) {
        const at = i < 0 ? null : this.at(curve, i);
        if (at) piece.push([...at, i]);
        else if (piece.length) pieces.push(piece.splice(0));
      }
      if (piece.length) pieces.push(piece);
      for (const points of pieces) {
        const lines = curve.style !== "points" && points.length > 1;
        if (lines && curve.error && curve.style === "lines") {
          pen.globalAlpha = 0.2;
          // Where an error is not known, the band has a gap.
          const bands = [[]];
          for (const [x, , i] of points) {
            if (curve.error[i] === null) bands.push([]);
            else bands[bands.length - 1].push([x, ends(i)]);
          }
          for (const band of bands) {
            pen.beginPath();
            band.forEach(([x, [, high]], k) => (k ? pen.lineTo(x, high) : pen.moveTo(x, high)));
            for (const [x, [low]] of [...band].reverse()) pen.lineTo(x, low);
            pen.fill();
          }
          pen.globalAlpha = 1;
        }
        if (lines) {
          pen.lineWidth = 1.6;
          pen.lineJoin = "round";
          this.line(...this.thinned(points));
          pen.lineWidth = 1;
        }
        if (curve.style === "points" || curve.style === "both" || points.length === 1) {
          for (const [x, y, i] of points) {
            if (curve.error && curve.error[i] !== null && curve.style !== "lines") {
              const [low, high] = ends(i);
              this.line([x, low], [x, high]);
              this.line([x - 3, low], [x + 3, low]);
              this.line([x - 3, high], [x + 3, high]);
            }
            this.dot(x, y, 3);
          }
        }
      }
    }
    /** The places of a curve that are drawn: of many on a line of rising abscissae the lowest and the highest of each half pixel,
     * and -1 where the line is broken. */
    *shownPlaces(curve, first, behind) {
      const step = Math.floor((behind - first) / (2 * this.wide));
      const all = step < 4 || !curve.rising || curve.style !== "lines";
      if (all) {
        for (let i = first; i < behind; i += 1) yield i;
        return;
      }
      const least = this.what.log[curve.right ? 2 : 1] ? 0 : -Infinity;
      for (let from = first; from < behind; from += step) {
        const to = Math.min(behind, from + step);
        let [low, high, broken] = [-1, -1, false];
        for (let i = from; i < to; i += 1) {
          const y = curve.y[i];
          if (y === null || !(y > least)) broken = true;
          else {
            if (low < 0 || y < curve.y[low]) low = i;
            if (high < 0 || y > curve.y[high]) high = i;
          }
        }
        if (low >= 0) yield Math.min(low, high);
        if (low !== high) yield Math.max(low, high);
        if (broken) yield -1;
      }
    }
    /** Of many points in one column of pixels the first, lowest, highest and last. */
    thinned(points) {
      if (points.length < 4 * this.wide) return points;
      const kept = [];
      let column = [];
      const flush = () => {
        if (!column.length) return;
        const by = (f) => column.reduce((a, b) => (f(b[1], a[1]) ? b : a));
        const chosen = new Set([column[0], by((b, a) => b < a), by((b, a) => b > a), column[column.length - 1]]);
        kept.push(...[...chosen].sort((a, b) => a[2] - b[2]));
      };
      for (const point of points) {
        if (column.length && Math.floor(point[0]) !== Math.floor(column[0][0])) {
          flush();
          column = [];
        }
        column.push(point);
      }
      flush();
      return kept;
    }
    drawBars(curve, ends) {
      const { pen } = this;
      const all = this.curves().filter((other) => other.style === "bars");
      const width = 0.8 / all.length;
      const from = -0.4 + width * all.indexOf(curve);
      curve.y.forEach((y, i) => {
        if (!finite(y)) return;
        const [a, b] = [this.px(i + 1 + from), this.px(i + 1 + from + width)];
        const [zero, top] = [this.py(0, false), this.py(y, false)];
        pen.fillRect(a, Math.min(zero, top), Math.max(1, b - a - 1), Math.abs(zero - top));
        if (curve.error && curve.error[i]) {
          pen.strokeStyle = "#222";
          const [low, high] = ends(i);
          this.line([(a + b) / 2, low], [(a + b) / 2, high]);
        }
      });
    }

    colour(z) {
      const { map } = this.what;
      const part = map.high > map.low ? (z - map.low) / (map.high - map.low) : 0.5;
      const at = Math.min(1, Math.max(0, part)) * (map.colours.length - 1);
      const k = Math.min(map.colours.length - 2, Math.floor(at));
      return map.colours[k].map((c, i) => Math.round(c + (at - k) * (map.colours[k + 1][i] - c)));
    }
    /** The cells as an image of a pixel each, made once and stretched. */
    drawMap() {
      const { pen, what } = this;
      const { map } = what;
      const [nx, ny] = [map.nx, map.ny];
      if (!this.image) {
        this.image = document.createElement("canvas");
        [this.image.width, this.image.height] = [nx, ny];
        const cells = this.image.getContext("2d").createImageData(nx, ny);
        for (let i = 0; i < nx; i += 1) {
          for (let j = 0; j < ny; j += 1) {
            const z = map.z[i * ny + j];
            cells.data.set([...(z === null ? map.nothing : this.colour(z)), 255], 4 * ((ny - 1 - j) * nx + i));
          }
        }
        this.image.getContext("2d").putImageData(cells, 0, 0);
      }
      const [x0, x1, y0, y1] = [this.px(map.x[0]), this.px(map.x[1]), this.py(map.y[0]), this.py(map.y[1])];
      pen.imageSmoothingEnabled = false;
      pen.drawImage(this.image, x0, y1, x1 - x0, y0 - y1);
    }
    drawScale(scale, small) {
      const { pen } = this;
      const { map } = this.what;
      const [x, top, high] = [this.right + 10, this.top + 0.1 * this.high, 0.8 * this.high];
      for (let k = 0; k < high; k += 1) {
        pen.fillStyle = `rgb(${this.colour(map.high - (k / high) * (map.high - map.low))})`;
        pen.fillRect(x, top + k, 14, 1.5);
      }
      pen.strokeStyle = pen.fillStyle = "#222";
      pen.strokeRect(x, top, 14, high);
      for (const [z, name] of scale) {
        const y = top + (map.high > map.low ? 1 - (z - map.low) / (map.high - map.low) : 0.5) * high;
        this.line([x + 14, y], [x + 18, y]);
        this.text(name, x + 20, y, "left", "middle", small);
      }
      if (map.label) this.text(map.label, x, top - 8, "left", "alphabetic", small);
    }

    // ------------------------------------------------------------------ the pointer
    inside(x, y) {
      return x >= this.left && x <= this.right && y >= this.top && y <= this.top + this.high;
    }
    /** Changes the axes that lie at a place by `how(axis, part)`; beside the plot that is one of them. */
    change(x, y, how) {
      const part = [(x - this.left) / this.wide, 1 - (y - this.top) / this.high];
      const axes = this.inside(x, y) ? [0, 1, 2] : y > this.top + this.high ? [0] : x < this.left ? [1] : [2];
      for (const axis of axes) {
        const next = how(this.view[axis], axis === 0 ? part[0] : part[1], axis);
        const size = Math.max(Math.abs(next[0]), Math.abs(next[1]));
        // Closer than numbers can tell apart nothing is to be seen.
        if (next[1] - next[0] > 1e-13 * size && Number.isFinite(size)) this.view[axis] = next;
      }
      this.hush();
      this.draw();
    }
    zoom(x, y, factor) {
      this.change(x, y, ([lo, hi], part) => {
        const at = lo + part * (hi - lo);
        return [at + (lo - at) * factor, at + (hi - at) * factor];
      });
    }
    move(x, y, dx, dy) {
      this.change(x, y, ([lo, hi], _, axis) => {
        const by = (axis === 0 ? -dx / this.wide : dy / this.high) * (hi - lo);
        return [lo + by, hi + by];
      });
    }

    listen() {
      const { canvas } = this;
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        this.zoom(...place(event), Math.exp(Math.max(-1, Math.min(1, event.deltaY * 0.002))));
      }, { passive: false });
      canvas.addEventListener("dblclick", () => {
        this.home();
        this.hush();
        this.draw();
      });
      const down = new Map();
      let box = null;
      canvas.addEventListener("pointerdown", (event) => {
        const [x, y] = place(event);
        const name = this.names.findIndex(([a, b, w, h]) => x >= a && x <= a + w && y >= b && y <= b + h);
        if (name >= 0) {
          if (!this.hidden.delete(name)) this.hidden.add(name);
          this.draw();
          return;
        }
        this.hush();
        canvas.setPointerCapture(event.pointerId);
        down.set(event.pointerId, [x, y]);
        box = event.shiftKey && this.inside(x, y) ? [x, y] : null;
      });
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = place(event);
        const before = down.get(event.pointerId);
        if (!before) return this.point(x, y);
        const others = [...down].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
        down.set(event.pointerId, [x, y]);
        if (box) {
          this.draw();
          this.pen.strokeStyle = "#222";
          this.pen.setLineDash([4, 3]);
          this.pen.strokeRect(box[0], box[1], x - box[0], y - box[1]);
          this.pen.setLineDash([]);
        } else if (others.length) {
          // Two fingers.
          const [a, b] = others[0];
          const distance = (p) => Math.max(10, Math.hypot(p[0] - a, p[1] - b));
          this.zoom((a + x) / 2, (b + y) / 2, distance(before) / distance([x, y]));
        } else {
          this.move(...before, x - before[0], y - before[1]);
        }
      });
      const up = (event) => {
        const [x, y] = place(event);
        if (down.delete(event.pointerId) && box) {
          const [[a, b], [c, d]] = [box, [x, y]];
          box = null;
          if (Math.abs(a - c) > 4 && Math.abs(b - d) > 4) {
            const parts = [
              [a, c].map((p) => (p - this.left) / this.wide),
              [b, d].map((p) => 1 - (p - this.top) / this.high),
            ].map((pair) => pair.sort((p, q) => p - q).map((p) => Math.min(1, Math.max(0, p))));
            this.change(a, b, ([lo, hi], _, axis) => parts[axis ? 1 : 0].map((p) => lo + p * (hi - lo)));
          } else this.draw();
        }
      };
      canvas.addEventListener("pointerup", up);
      canvas.addEventListener("pointercancel", up);
      canvas.addEventListener("pointerleave", () => {
        if (!down.size) this.hush();
      });
      canvas.addEventListener("keydown", (event) => {
        const [x, y] = [this.left + this.wide / 2, this.top + this.high / 2];
        const step = 40;
        const keys = {
          "+": () => this.zoom(x, y, 0.8), "=": () => this.zoom(x, y, 0.8), "-": () => this.zoom(x, y, 1.25),
          ArrowLeft: () => this.move(x, y, step, 0), ArrowRight: () => this.move(x, y, -step, 0),
          ArrowUp: () => this.move(x, y, 0, step), ArrowDown: () => this.move(x, y, 0, -step),
          0: () => (this.home(), this.draw()),
        };
        if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        keys[event.key]();
      });
    }

    /** The values under the pointer. */
    point(x, y) {
      const found = this.inside(x, y) ? (this.what.map ? this.cell(x, y) : this.nearest(x, y)) : null;
      if (!found) {
        this.hush();
        return;
      }
      this.mark.style.display = "block";
      this.mark.style.left = found.x + "px";
      this.mark.style.top = found.y + "px";
      this.values.textContent = flat(found.text);
      this.values.style.display = "block";
      const [w, h] = [this.values.offsetWidth, this.values.offsetHeight];
      this.values.style.left = (found.x + 12 + w > this.width ? found.x - 12 - w : found.x + 12) + "px";
      this.values.style.top = Math.max(0, found.y - h - 8) + "px";
    }
    /** No values are shown. */
    hush() {
      this.values.style.display = this.mark.style.display = "none";
    }
    nearest(x, y) {
      let best = null;
      for (const curve of this.curves()) {
        const [first, behind] = this.between(curve, x - 40, x + 40);
        for (let i = first; i < behind; i += 1) {
          const at = this.at(curve, i);
          if (!at || !this.inside(...at)) continue;
          const distance = Math.hypot(at[0] - x, at[1] - y);
          if (!best || distance < best.distance) best = { curve, i, at, distance };
        }
      }
      if (!best || best.distance > 40) return null;
      const { what } = this;
      const { curve, i } = best;
      const across = what.categories.length ? what.categories[Math.round(curve.x[i]) - 1] : shown(curve.x[i]);
      const error = curve.error && curve.error[i] !== null ? " ± " + shown(curve.error[i], 2) : "";
      const lines = [`${what.xlabel || "x"} = ${across}`, `${curve.name} = ${shown(curve.y[i])}${error}`];
      return { x: best.at[0], y: best.at[1], text: lines.join("\n") };
    }
    cell(x, y) {
      const { what } = this;
      const { map } = what;
      const index = ([lo, hi], n, u) => Math.floor(((u - lo) / (hi - lo)) * n);
      const [vx, vy] = this.view;
      const u = vx[0] + ((x - this.left) / this.wide) * (vx[1] - vx[0]);
      const v = vy[0] + (1 - (y - this.top) / this.high) * (vy[1] - vy[0]);
      const [i, j] = [index(map.x, map.nx, u), index(map.y, map.ny, v)];
      if (i < 0 || j < 0 || i >= map.nx || j >= map.ny) return null;
      const centre = ([lo, hi], n, k) => lo + ((k + 0.5) / n) * (hi - lo);
      const nearest = (all, at) => all.reduce((a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a));
      const cx = map.xs ? nearest(map.xs, centre(map.x, map.nx, i)) : centre(map.x, map.nx, i);
      const cy = map.ys ? nearest(map.ys, centre(map.y, map.ny, j)) : centre(map.y, map.ny, j);
      const text = [
        `${what.xlabel || "x"} = ${shown(cx)}`,
        `${what.ylabel || "y"} = ${shown(cy)}`,
        `${map.label || "value"} = ${shown(map.z[i * map.ny + j])}`,
      ].join("\n");
      return { x: this.px(cx), y: this.py(cy), text };
    }
  }

  const rows = [];
  let number = 0;
  if (spec.title) main.append(Object.assign(document.createElement("h1"), { textContent: spec.title }));
  for (const row of spec.rows) {
    const line = Object.assign(document.createElement("div"), { className: "row" });
    main.append(line);
    rows.push(row.map((what) => {
      const place = Object.assign(document.createElement("div"), { className: "panel" });
      line.append(place);
      const letter = spec.letters ? String.fromCharCode(97 + (number % 26)) : "";
      number += 1;
      return new Panel(place, what, letter);
    }));
  }
  const help = Object.assign(document.createElement("p"), { className: "help" });
  help.textContent =
    "Wheel or + and -: zoom, beside the plot along one axis. Drag or arrows: move. Shift and drag: zoom to a box. " +
    "Double click or 0: all. A click on a name hides its curve.";
  main.append(help);
  if (spec.serif) document.body.classList.add("serif");

  function arrange() {
    const [w, h] = spec.size;
    const width = Math.max(300, Math.min(1400, document.documentElement.clientWidth - 40));
    const scale = Math.max(0.5, Math.min(width / w, Math.max(240, window.innerHeight - 90) / h));
    for (const row of rows) {
      for (const panel of row) panel.resize((w * scale) / row.length, (h * scale) / rows.length);
    }
  }
  window.addEventListener("resize", arrange);
  arrange();
  // For those who drive the page from a script.
  window.umklapp = { panels: rows.flat() };
})();
