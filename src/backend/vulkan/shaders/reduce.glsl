// fold_lanes of numerics/reduce.h: sixteen lane sums by halves, in one thread's registers.
float fold_lanes(float lanes[16]) {
  [[unroll]] for (int half_count = 8; half_count > 0; half_count /= 2)
    [[unroll]] for (int l = 0; l < half_count; ++l) {
      precise float sum = lanes[l] + lanes[l + half_count];
      lanes[l] = sum;
    }
  return lanes[0];
}
