// Tells what is under the pointer and what is alive at a step. #data: as write_data() in timeline_picture.cpp says.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const svg = document.querySelector("#frame .picture");
  const get = (id) => document.getElementById(id);
  const frame = get("frame"), tip = get("tip"), slider = get("step");
  const last = data.steps.length - 1;
  const stepWidth = (data.right - data.left) / Math.max(data.steps.length, 1);
  const mostRows = 300;

  const items = data.items.map(([kind, offset, bytes, first, last, tensors]) =>
    ({kind: data.kinds[kind], offset, bytes, first, last,
      tensors: tensors.map(([name, type, bytes, producer]) => ({name, type, bytes, producer}))}));
  const steps = data.steps.map(([operator, alive, outputs, scratch]) => ({operator, alive, outputs, scratch}));

  const size = (bytes) =>
    bytes >= 104857600 ? (bytes / 1048576).toFixed(0) + " MiB" :
    bytes >= 524288 ? (bytes / 1048576).toFixed(2) + " MiB" :
    bytes >= 102400 ? (bytes / 1024).toFixed(0) + " KiB" :
    bytes >= 1024 ? (bytes / 1024).toFixed(1) + " KiB" : bytes + " B";
  const exact = (bytes) => bytes.toLocaleString("en") + " bytes";
  const short = (name) => name.split(";")[0] || name;
  const nameOf = (item) =>
    item.kind === "scratch" ? "scratch of " + steps[item.first].operator :
    item.kind === "addresses" ? "addresses of the tensors" :
    item.kind === "resources" ? "variables shared by the subgraphs" :
    item.tensors.map((t) => short(t.name)).join(" \u2192 ");
  const typeAt = (item, step) => {
    let found = item.tensors[0];
    for (const t of item.tensors) if (t.producer >= 0 && t.producer <= step) found = t;
    return found ? found.type : "";
  };
  const span = (item) => item.first === item.last ? "step " + item.first : "steps " + item.first + " to " + item.last;

  // Only text goes into elements, never markup: names are whatever the file says.
  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const drawn = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const swatch = (kind) => {
    const made = drawn("svg", {class: "swatch", viewBox: "0 0 12 12", "aria-hidden": "true"});
    made.append(drawn("rect", {class: kind, width: 12, height: 12}));
    return made;
  };
  const markStep = drawn("rect", {class: "mark-step", y: data.alive_top, height: data.bottom - data.alive_top, width: Math.max(stepWidth, 1.5)});
  const markItem = drawn("rect", {class: "mark-item", visibility: "hidden"});
  svg.querySelector(".labels").before(markStep, markItem);

  let step = 0, item = null, pinned = false, zoom = 1, shownStep = -1;

  const aliveAt = (s) => items.filter((i) => i.first <= s && s <= i.last).sort((a, b) => b.bytes - a.bytes);
  const yOf = (bytes) => data.bottom - (data.bottom - data.top) * bytes / data.bytes;

  const mark = (which) => {
    markItem.setAttribute("visibility", which ? "visible" : "hidden");
    if (!which) return;
    const top = yOf(which.offset + which.bytes);
    markItem.setAttribute("x", data.left + which.first * stepWidth);
    markItem.setAttribute("width", (which.last - which.first + 1) * stepWidth);
    markItem.setAttribute("y", top);
    markItem.setAttribute("height", yOf(which.offset) - top);
  };

  const showItem = () => {
    const card = get("item");
    card.replaceChildren();
    if (!item) {
      card.append(element("h2", "No tensor is chosen"), element("p", "Point at one, or choose one of the list. A click holds the step until the next click or Escape."));
      return;
    }
    const name = element("h2");
    name.append(swatch(item.kind), nameOf(item));
    card.append(name);
    const list = element("dl");
    const say = (what, value) => list.append(element("dt", what), element("dd", value));
    say("kind", item.kind);
    say("holds", size(item.bytes) + " (" + exact(item.bytes) + ") at " + item.offset.toLocaleString("en"));
    say("alive", span(item));
    for (const t of item.tensors) {
      if (item.tensors.length > 1 || short(t.name) !== t.name) say("tensor", t.name);
      say("type", t.type);
      if (item.tensors.length > 1 || t.bytes !== item.bytes) say("bytes", exact(t.bytes));
      if (t.producer >= 0) say("made by", "step " + t.producer + ", " + steps[t.producer].operator);
    }
    card.append(list);
  };

  const showRows = () => {
    const body = get("alive");
    const alive = aliveAt(step);
    body.replaceChildren(...alive.slice(0, mostRows).map((i) => {
      const row = element("tr");
      const cell = element("td", undefined, "name");
      const button = element("button");
      button.type = "button";
      const name = element("span", nameOf(i));
      name.append(element("span", [typeAt(i, step), span(i)].filter(Boolean).join(", "), "small"));
      button.append(swatch(i.kind), name);
      button.addEventListener("click", () => { pinned = true; choose(step, i); });
      row.addEventListener("mouseenter", () => mark(i));
      row.addEventListener("mouseleave", () => mark(item));
      cell.append(button);
      row.append(element("td", size(i.bytes), "number"), cell);
      row.item = i;
      return row;
    }));
    get("more").textContent = alive.length > mostRows ? "and " + (alive.length - mostRows) + " smaller ones" : "";
  };

  const showStep = () => {
    const s = steps[step];
    get("title").textContent = "Step " + step + ", " + s.operator + ": " + size(s.alive) + " alive" + (step === data.peak ? ", the peak" : "");
    get("note").textContent = "outputs " + size(s.outputs) + ", scratch " + size(s.scratch) + ", block " + size(data.bytes) + (pinned ? "; held" : "");
    get("number").textContent = step + " / " + last;
    slider.value = step;
    markStep.setAttribute("x", data.left + (step + 0.5) * stepWidth - Math.max(stepWidth, 1.5) / 2);
    if (shownStep !== step) showRows();
    shownStep = step;
    for (const row of get("alive").children) row.classList.toggle("chosen", row.item === item);
  };

  const choose = (s, i) => {
    step = Math.min(Math.max(s, 0), last);
    item = i && i.first <= step && step <= i.last ? i : null;
    mark(item);
    showStep();
    showItem();
  };

  // The step of the slider stays in sight of an enlarged picture.
  const follow = () => {
    const x = (data.left + (step + 0.5) * stepWidth) / svg.viewBox.baseVal.width * svg.clientWidth;
    if (x < frame.scrollLeft + 40 || x > frame.scrollLeft + frame.clientWidth - 40) frame.scrollLeft = x - frame.clientWidth / 2;
  };

  const under = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (at.x < data.left || at.x >= data.right || at.y > data.bottom) return null;
    const s = Math.min(Math.floor((at.x - data.left) / stepWidth), last);
    const offset = (data.bottom - at.y) / (data.bottom - data.top) * data.bytes;
    return {step: s, item: items.find((i) => i.first <= s && s <= i.last && i.offset <= offset && offset < i.offset + i.bytes) || null};
  };

  const showTip = (event, found) => {
    tip.hidden = !found;
    if (!found) return;
    tip.replaceChildren(element("span", found.item ? nameOf(found.item) : "Step " + found.step + ", " + steps[found.step].operator));
    tip.append(element("span", found.item ? [typeAt(found.item, found.step), size(found.item.bytes), span(found.item)].filter(Boolean).join(", ")
                                          : size(steps[found.step].alive) + " alive", "small"));
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18;
    tip.style.left = Math.max(left, 8) + "px";
    tip.style.top = (below + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 12 : below) + "px";
  };

  const enlarge = (factor) => {
    const middle = (frame.scrollLeft + frame.clientWidth / 2) / svg.clientWidth;
    zoom = Math.min(Math.max(zoom * factor, 1), 32);
    svg.style.width = zoom === 1 ? "" : 100 * zoom + "%";
    frame.scrollLeft = middle * svg.clientWidth - frame.clientWidth / 2;
  };

  const keys = {
    ArrowLeft: () => choose(step - 1, item),
    ArrowRight: () => choose(step + 1, item),
    Home: () => choose(0, item),
    End: () => choose(last, item),
    p: () => choose(data.peak, item),
    Escape: () => { pinned = false; choose(step, null); },
    ArrowUp: () => choose(step, neighbour(1)),
    ArrowDown: () => choose(step, neighbour(-1)),
  };
  const neighbour = (by) => {
    const alive = aliveAt(step).sort((a, b) => a.offset - b.offset);
    const at = alive.indexOf(item);
    return alive[at < 0 ? (by > 0 ? 0 : alive.length - 1) : Math.min(Math.max(at + by, 0), alive.length - 1)];
  };

  if (last < 0) return;
  document.body.classList.add("scripted");
  document.querySelector(".details").hidden = false;
  slider.max = last;
  svg.addEventListener("pointermove", (event) => {
    const found = under(event);
    if (event.pointerType === "mouse") showTip(event, found);
    if (found && !pinned) choose(found.step, found.item);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("click", (event) => {
    const found = under(event);
    if (!found) return;
    pinned = !(pinned && found.step === step && found.item === item);
    choose(found.step, found.item);
  });
  slider.addEventListener("input", () => { pinned = true; choose(Number(slider.value), item); follow(); });
  get("peak").addEventListener("click", () => { pinned = true; choose(data.peak, item); follow(); });
  get("larger").addEventListener("click", () => enlarge(2));
  get("smaller").addEventListener("click", () => enlarge(0.5));
  frame.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    pinned = event.key !== "Escape";
    act();
    follow();
  });
  choose(data.peak, null);
})();
