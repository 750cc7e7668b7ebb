/* The payload of a scene: a header in JSON and arrays of numbers; `payload_of` in Python writes it. */

const NONE = 0xffff; // the category of a row without one
const COLUMNS = { selected: Uint8Array, categories0: Uint16Array, categories1: Uint16Array, anchors: Uint32Array, cells: Uint32Array, prominence: Uint32Array, clusters0: Uint16Array, clusters1: Uint16Array, ids: Uint8Array, facetRows: Uint32Array };

function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const take = (name, kind = COLUMNS[name] ?? Float32Array) => {
    const [start, size] = header.arrays[name];
    const copy = bytes.slice(4 + length + start, 4 + length + start + size); // aligned, and free of the message around it
    return new kind(copy.buffer);
  };
  return { header, take };
}

/* Say in the panes' place why they are not drawn, above those that were drawn before; "" takes back what was said. */
function sayFailure(host, sentence) {
  host.querySelector(":scope > .ls-error")?.remove();
  if (sentence) host.prepend(element("p", "ls-error", { role: "alert" }, sentence));
}

/* The rows in a bitset of n. */
function rowsIn(bytes, n) {
  const rows = new Uint32Array(n);
  let found = 0;
  for (let row = 0; row < n; row++) if ((bytes[row >> 3] >> (row & 7)) & 1) rows[found++] = row;
  return rows.slice(0, found);
}

/* The rows of n that are in one of two lists. */
function joined(rows, others, n) {
  const bytes = new Uint8Array((n + 7) >> 3);
  for (const list of [rows, others]) for (const row of list) bytes[row >> 3] |= 1 << (row & 7);
  return rowsIn(bytes, n);
}

/* Rows of n as a bitset in base64. */
function rowsAsBits(rows, n) {
  const bytes = new Uint8Array((n + 7) >> 3);
  for (const row of rows) bytes[row >> 3] |= 1 << (row & 7);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}
