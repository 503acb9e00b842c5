// Copying, cutting and pasting by a page's own means: its handlers are asked first, and the system's clipboard, which all
// contexts of a browser share, is not touched.
() => {
  const focused = () => {
    let el = document.activeElement;
    while (el && (el.shadowRoot ?? el[Symbol.for('cuarl.shadow')])?.activeElement)
      el = (el.shadowRoot ?? el[Symbol.for('cuarl.shadow')]).activeElement;
    return el ?? document.body;
  };
  const fieldText = (el) => {
    if (typeof el.value !== 'string' || el.type === 'password') return null;
    try {
      return typeof el.selectionStart === 'number' ? el.value.slice(el.selectionStart, el.selectionEnd) : null;
    } catch {
      return null;
    }
  };
  const asked = (kind, data) => {
    const event = new ClipboardEvent(kind, {clipboardData: data, bubbles: true, cancelable: true, composed: true});
    return !focused().dispatchEvent(event);
  };
  // the text that is copied or cut ('' if none); what is cut is gone
  const take = (kind) => {
    const data = new DataTransfer();
    if (asked(kind, data)) return data.getData('text/plain');
    const el = focused();
    const text = el.type === 'password' ? '' : fieldText(el) ?? String(getSelection());
    if (kind === 'cut' && text) erase();
    return text;
  };
  const {execCommand} = Document.prototype;
  const erase = () => (execCommand[Symbol.for('cuarl.own')] ?? execCommand).call(document, 'delete');
  // whether the page itself took a text that is pasted
  const give = (text) => {
    const data = new DataTransfer();
    data.setData('text/plain', text);
    return asked('paste', data);
  };
  return {take, give};
}
