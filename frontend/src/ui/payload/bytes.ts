// Byte conversion and hex dumps.

const WIDTH = 16;

export function bytesOfBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function bytesOfText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Hex dump of the first `limit` bytes, 16 per line: `00000010  68 65 6c 6c 6f …  hello…`. */
export function hexLines(bytes: Uint8Array, limit: number): string {
  const lines: string[] = [];
  for (let start = 0; start < Math.min(bytes.length, limit); start += WIDTH) {
    const line = bytes.subarray(start, Math.min(start + WIDTH, limit));
    const codes = Array.from(line, (byte) => byte.toString(16).padStart(2, "0"));
    const halves = `${codes.slice(0, 8).join(" ").padEnd(23)}  ${codes.slice(8).join(" ").padEnd(23)}`;
    lines.push(`${start.toString(16).padStart(8, "0")}  ${halves}  ${toAscii(line)}`);
  }
  return lines.join("\n");
}

function toAscii(line: Uint8Array): string {
  return Array.from(line, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
}
