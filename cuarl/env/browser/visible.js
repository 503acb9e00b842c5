// Where a screenshot shows each of some elements of a frame, or why it doesn't. Reads only; boxes are in the frame's CSS pixels.
async (elements) => {
  const above = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  const within = (node, element) => {
    for (; node; node = above(node)) if (node === element) return true;
    return false;
  };
  const at = (x, y) => {  // the innermost element there, in components too
    let hit = null;
    for (let root = document; root; root = hit.shadowRoot) {
      const next = root.elementFromPoint(x, y);
      if (!next || next === hit) break;
      hit = next;
    }
    return hit;
  };
  const named = (element) => {
    const {id, classList} = element;
    return `<${element.localName}${id ? '#' + id : ''}${[...classList].slice(0, 2).map((name) => '.' + name).join('')}>`;
  };
  // the browser itself tells what is left of an element after all clipping, that by frames around included
  const parts = await new Promise((done) => {
    const found = new Map();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) found.set(entry.target, entry.intersectionRect);
      if (found.size === elements.length) {
        observer.disconnect();
        done(found);
      }
    });
    elements.forEach((element) => observer.observe(element));
    if (!elements.length) done(found);
  });
  const cut = (a, b) => {
    const left = Math.max(a.left, b.left), top = Math.max(a.top, b.top);
    return [left, top, Math.min(a.right, b.right), Math.min(a.bottom, b.bottom)];
  };
  const area = ([left, top, right, bottom]) => Math.max(right - left, 0) * Math.max(bottom - top, 0);
  const outside = (box) => {
    if (!(box.width && box.height)) return 'takes up no space';
    if (box.top >= innerHeight) return 'lies below what is shown';
    if (box.bottom <= 0) return 'lies above what is shown';
    if (box.left >= innerWidth || box.right <= 0) return 'lies beside what is shown';
    return 'is scrolled or cut out of sight';
  };
  return elements.map((element) => {
    const text = String(element.value ?? element.innerText ?? '').trim();
    const hidden = {text, box: null};
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) return {...hidden, why: 'is hidden'};
    // of a link over two lines each line is a box of its own, and the middle of both may be neither
    const boxes = [...element.getClientRects()].map((box) => cut(box, parts.get(element))).filter((box) => area(box) >= 1);
    if (!boxes.length) return {...hidden, why: outside(element.getBoundingClientRect())};
    boxes.sort((a, b) => area(b) - area(a));
    let over = null;
    for (const box of boxes) {
      over = at((box[0] + box[2]) / 2, (box[1] + box[3]) / 2);
      if (over && (within(over, element) || over.closest('label')?.control === element)) return {text, box, why: ''};
    }
    return {...hidden, why: over ? `is covered by ${named(over)}` : 'lies beside what is shown'};
  });
}
