// A page's own copy buttons use the clipboard of the episode, as the keys do. Run in each document before its own scripts, with
// the functions of clipboard.js and one that hands a text over.
(({take}, told) => {
  const {execCommand} = Document.prototype;
  Document.prototype.execCommand = function (command, ...rest) {
    const kind = String(command).toLowerCase();
    if (kind !== 'copy' && kind !== 'cut') return execCommand.call(this, command, ...rest);
    const text = take(kind);
    if (text) told(text);
    return Boolean(text);
  };
  Document.prototype.execCommand[Symbol.for('cuarl.own')] = execCommand;
  if (typeof Clipboard === 'undefined') return;  // not a secure context
  Clipboard.prototype.writeText = async (text) => { told(String(text)); };
  Clipboard.prototype.write = async (items) => {
    for (const item of items)
      if (item.types.includes('text/plain')) told(await (await item.getType('text/plain')).text());
  };
})
