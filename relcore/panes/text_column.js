/* TextColumn: a text for each row, UTF-8, one apart from the next by the unit separator; a text is decoded when it is wanted, as a million
   strings at once would take longer than a frame and more memory than all coordinates. */

class TextColumn {
  constructor(bytes) {
    this.bytes = bytes;
  }

  at(row) {
    this.ends ??= this.found();
    if (row >= this.ends.length) return undefined;
    return new TextDecoder().decode(this.bytes.subarray(row ? this.ends[row - 1] + 1 : 0, this.ends[row]));
  }

  found() {
    const { bytes } = this;
    let rows = 1;
    for (let i = 0; i < bytes.length; i++) if (bytes[i] === 0x1f) rows++;
    const ends = new Uint32Array(rows);
    for (let i = 0, row = 0; i < bytes.length; i++) if (bytes[i] === 0x1f) ends[row++] = i;
    ends[rows - 1] = bytes.length;
    return ends;
  }
}
