// The text that a document shows, in reading order: innerText, which leaves out what stands in components (shadow DOM), with
// the components' text in its place. Frames are read one by one, and not here.
(limit) => {
  const closed = Symbol.for('cuarl.shadow');
  const rootOf = (el) => el.shadowRoot ?? el[closed] ?? null;
  const hosts = (root) => [...root.querySelectorAll('*')].some(rootOf);
  const children = (node) => {
    const root = rootOf(node);
    if (root) return root.childNodes;
    const assigned = node.localName === 'slot' ? node.assignedNodes({flatten: true}) : [];
    return assigned.length ? assigned : node.childNodes;
  };
  const walk = (node, visible) => {
    if (node.nodeType === Node.TEXT_NODE) return visible ? node.data.replace(/\s+/g, ' ') : '';
    if (node.nodeType !== Node.ELEMENT_NODE || /^(script|style|template|noscript|iframe)$/.test(node.localName)) return '';
    const {display, visibility} = getComputedStyle(node);
    if (display === 'none') return '';
    const plain = !rootOf(node) && node.localName !== 'slot' && !hosts(node);
    const inner = plain ? node.innerText : [...children(node)].map((one) => walk(one, visibility === 'visible')).join('');
    return /^(inline|contents)/.test(display) ? inner : `\n${inner}\n`;
  };
  const body = document.body;
  if (!body) return '';
  const text = rootOf(body) || hosts(body) ? walk(body, true).replace(/ *\n\s*/g, '\n').trim() : body.innerText ?? '';
  return text.slice(0, limit);
}
