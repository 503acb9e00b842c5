// What the thing at a point of the page may be called in a plan, the clearest name first. Reads only.
([x, y]) => {
  let hit = null;
  for (let root = document; root; root = hit.shadowRoot) {
    const next = root.elementFromPoint(x, y);
    if (!next || next === hit) break;
    hit = next;
  }
  if (!hit) return {editable: false, names: []};
  const line = (text) => (text ?? '').trim().replace(/\s+/g, ' ');
  const short = (text) => (text && text.length <= 60 ? text : '');
  const control = hit.closest('button, a[href], input, select, textarea, summary, label, [role], [contenteditable]') ?? hit;
  const field = control.localName === 'label' ? control.control ?? control : control;
  const editable = field.matches('textarea, select, [contenteditable], input:not([type=button], [type=submit], [type=checkbox], [type=radio])');
  const names = [];
  const labels = [...(field.labels ?? [])].map((label) => line(label.innerText));
  const said = [field.getAttribute('aria-label'), ...labels, field.getAttribute('placeholder')].map(line).find(short);
  if (field.matches('input, select, textarea') && said) names.push({label: said});
  const text = short(line(control.innerText)) || short(line(hit.innerText));
  if (!editable && text && !field.matches('input')) names.push({text});
  const roles = {button: 'button', a: 'link', select: 'combobox', textarea: 'textbox', summary: 'button'};
  const types = {checkbox: 'checkbox', radio: 'radio', submit: 'button', button: 'button'};
  const role = field.getAttribute('role') ?? (field.localName === 'input' ? types[field.type] ?? 'textbox' : roles[field.localName]);
  const name = said || text || short(line(field.value && types[field.type] === 'button' ? field.value : ''));
  if (role && name) names.push({role, name});
  const quoted = (value) => value.replace(/["\\]/g, '\\$&');
  for (const key of ['data-testid', 'name', 'title']) {
    const value = field.getAttribute(key);
    if (value) names.push({css: `${field.localName}[${key}="${quoted(value)}"]`});
  }
  for (const one of new Set([field, hit])) if (/^[A-Za-z_][\w-]*$/.test(one.id)) names.push({css: `#${one.id}`});
  const steps = [];
  for (let one = hit; one && one !== document.documentElement; one = one.parentElement) {
    if (/^[A-Za-z_][\w-]*$/.test(one.id) && one !== hit) {
      steps.unshift(`#${one.id}`);
      break;
    }
    const alike = [...(one.parentElement?.children ?? [])].filter((other) => other.localName === one.localName);
    steps.unshift(one.localName + (alike.length > 1 ? `:nth-of-type(${alike.indexOf(one) + 1})` : ''));
  }
  names.push({css: steps.join(' > ')});
  return {editable, names};
}
