/** The codec zstd for zarrita by fzstd, which has 8 kB where numcodecs has 750 kB; pages only decode. */

import { decompress } from "fzstd";

export default class Zstd {
  readonly kind = "bytes_to_bytes";

  static fromConfig(): Zstd {
    return new Zstd();
  }

  encode(): never {
    throw new Error("a page writes no chunks");
  }

  decode(bytes: Uint8Array): Uint8Array {
    return decompress(bytes);
  }
}
