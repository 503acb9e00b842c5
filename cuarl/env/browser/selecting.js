// The innermost element at a point of this document, in components (shadow DOM) too, closed ones included.
([x, y]) => {
  const closed = Symbol.for('cuarl.shadow');
  let hit = document.elementFromPoint(x, y);
  for (let root = hit?.shadowRoot ?? hit?.[closed]; root; root = hit?.shadowRoot ?? hit?.[closed]) {
    const inner = root.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
}
