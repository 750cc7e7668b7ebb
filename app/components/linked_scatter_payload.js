/* The payload of a scene: a header in JSON and arrays of numbers; `pack_scene` in Python writes it. */

const NONE = 0xffff; // the category of a row without one
const COLUMNS = { selected: Uint8Array, categories0: Uint16Array, categories1: Uint16Array, anchors: Uint32Array, cells: Uint32Array, prominence: Uint32Array, clusters: Uint16Array, ids: Uint8Array };

function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const take = (name) => {
    const [start, size] = header.arrays[name];
    const copy = bytes.slice(4 + length + start, 4 + length + start + size); // aligned, and free of Streamlit's message
    return new (COLUMNS[name] ?? Float32Array)(copy.buffer);
  };
  return { header, take };
}

function rowsIn(bytes, n) {
  const rows = [];
  for (let row = 0; row < n; row++) if ((bytes[row >> 3] >> (row & 7)) & 1) rows.push(row);
  return rows;
}

/* Rows of n as a bitset in base64. */
function rowsAsBits(rows, n) {
  const bytes = new Uint8Array((n + 7) >> 3);
  for (const row of rows) bytes[row >> 3] |= 1 << (row & 7);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}
