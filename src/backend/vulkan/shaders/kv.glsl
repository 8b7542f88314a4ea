// Keys and values in pages. Page p of a sequence holds positions 32p .. 32p+31 of all layers; its address is
// page_addresses[page number], and a layer's keys and values begin at fixed words of it:
//   keys   [kv head][position / 16][d / per][position % 16]   (a thread owns a position)
//   values [kv head][position][d / per]                       (a thread owns an output value)
// in words of `per` values: one F32, or two F16 of neighbouring d, so that one thread writes a whole word.
layout(constant_id = 0) const bool KEY_F16 = true;
layout(constant_id = 1) const bool VALUE_F16 = true;

const uint kPagePositions = 32u;

uint key_words(uint length) { return KEY_F16 ? (length + 1u) / 2u : length; }
uint value_words(uint length) { return VALUE_F16 ? (length + 1u) / 2u : length; }

// Word `w` of a position's key or value.
uint key_word_at(uint kv_head, uint position, uint w, uint words) {
  const uint in_page = position % kPagePositions;
  return ((kv_head * 2u + in_page / 16u) * words + w) * 16u + in_page % 16u;
}
uint value_word_at(uint kv_head, uint position, uint w, uint words) {
  return (kv_head * kPagePositions + position % kPagePositions) * words + w;
}
