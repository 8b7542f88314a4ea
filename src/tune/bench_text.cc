#include "tune/bench_text.h"

namespace spillway::tune {

std::string_view bench_text() {
  return R"text(The harbour lay still under a sky the colour of slate. On the eastern quay the first lorries had begun to queue,
their drivers leaning on open doors and talking about the price of diesel. Marta counted them from the window of the
harbour master's office: eleven, and it was not yet six. The storm that the radio had promised for the night had gone
around them to the north, and with it the excuse that everybody had prepared for being late.

"Eleven," she said, without turning round.

"Twelve with the one behind the crane," said Ilan. He had the tide tables open in front of him, three different ones,
because no two printers agreed about the second of the month. "If the pilot comes by seven we can have the grain ship
alongside before the ebb. If he doesn't, she waits until evening, and so do the lorries."

What is a tide table, when one thinks about it? It is a forecast that has been right for two hundred years. The moon pulls,
the water follows with a delay that depends on the shape of the coast, and a sum of a few dozen cosines, each with its own
period and its own phase, tells the height of the sea at a given minute to within the width of a hand. The harmonics were
found by Lord Kelvin's brass machine, which added cosines by turning pulleys; today they are found by least squares, but
the numbers in the table are the same.

To cook rice for four people, rinse two cups of it until the water runs clear, then let it drain. Bring three cups of water
to the boil with a teaspoon of salt. Add the rice, stir once, lower the heat as far as it will go, and cover the pan. After
fifteen minutes take it off the fire and leave the lid on for ten more. Do not look; the steam is doing the work. Loosen
the grains with a fork. Leftovers must be cooled within the hour and eaten the next day.

def moving_average(values, width):
    """Yields the mean of each window of `width` consecutive values."""
    if width < 1:
        raise ValueError("width must be at least 1")
    total = 0.0
    window = []
    for value in values:
        window.append(value)
        total += value
        if len(window) > width:
            total -= window.pop(0)
        if len(window) == width:
            yield total / width

The library at the corner of Station Road closes at eight on weekdays and at one on Saturdays. Members may borrow up to
twelve items for four weeks, and renew them twice unless somebody else is waiting. Reference works, newspapers and the
maps in the long drawers stay in the building. There are six desks with sockets; they cannot be reserved, and the kettle in
the corridor is for the staff. Children under ten need a grown-up with them. Dogs do not.

In the second experiment the plates were kept at four degrees for the whole of the first week, then moved to the bench and
photographed every thirty minutes. Growth began after a lag of nine hours (standard deviation 1.4, n = 36). The treated
plates lagged by twelve hours on average; the difference is larger than what one would expect by chance (two-sided
permutation test, ten thousand shuffles, p = 0.003), but smaller than in the first experiment, and it disappeared when the
medium was changed. We therefore do not claim an effect. The raw images and the script that counts the colonies are in the
supplement, and we would be glad if somebody tried to prove us wrong.

struct Interval { long begin, end; };

// Merges overlapping intervals in place; the result is sorted and disjoint.
void merge(std::vector<Interval>& list) {
  std::sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Interval& next : list) {
    if (kept > 0 && next.begin <= list[kept - 1].end) {
      list[kept - 1].end = std::max(list[kept - 1].end, next.end);
    } else {
      list[kept++] = next;
    }
  }
  list.resize(kept);
}

Dear Mr Okafor, thank you for your letter of the 14th. We have looked into the matter of the missing parcel and found that
it was signed for at 10:42 by a person whose name we cannot read. The driver remembers a green door and a bicycle. If
neither is yours, please let us know by the end of the month, and we will either send a replacement or return the amount
of 38.50 to your account, whichever you prefer. With kind regards, and apologies for the trouble.

When the railway came to the valley the mill stopped within ten years. It was not that the railway did anything to the
mill. Flour from the plains was simply cheaper at the station than flour from upstairs, and one by one the farmers stopped
turning left at the bridge. The miller's son became a signalman. He wrote the weather into the signal log each morning for
thirty-one years, and that log is now the longest unbroken record of temperature and rain in the district: climate
research has been done with it that its author could not have imagined, on paper meant for delays and broken lamps.

Question: a train leaves at 9:10 and travels 84 kilometres at an average of 72 kilometres per hour. When does it arrive?
Answer: 84 divided by 72 is one and one sixth of an hour, which is seventy minutes, so it arrives at 10:20. Question: and
if it stands for six minutes on the way? Then at 10:26, provided that the average was meant for the moving train.

#!/bin/sh
# Keeps the newest seven backups and deletes the others.
set -eu
cd "${1:?usage: prune.sh FOLDER}"
ls -1t backup-*.tar.zst | tail -n +8 | while read -r file; do
  echo "removing $file"
  rm -- "$file"
done

It is sometimes said that measuring changes what is measured. In computing the effect is seldom mystical: a timer call takes
twenty nanoseconds, a log line takes a thousand, and a loop that is watched does not fit where the same loop fitted unwatched.
More often it is the second kind of disturbance that matters. The machine is not alone. Another program wakes up, the clock
frequency falls because the room is warm, a page that was in memory is not any more. A single number is then a rumour. Ten
numbers, taken in turn with ten of what one compares them to, are the beginning of knowledge, and the honest way of
reporting them is to show all ten.

Die Brücke war schon am Vormittag gesperrt worden, aber niemand hatte es den Leuten auf der anderen Seite gesagt. Sie
standen mit ihren Körben am Geländer und sahen zu, wie zwei Männer in orangefarbenen Westen Schrauben zählten. Le marché
commence à sept heures, et à midi il ne reste que les pommes de terre. Il mercato del pesce invece chiude prima.

The afternoon brought wind from the south-west, force five, and the grain ship came in with the last of the flood after
all. Marta wrote the time into the book, 14:07, and under it the names of those who had helped: pilot, two tugs, four
linesmen, and a boy with a bicycle who had carried the papers. Then she closed the window, because the dust from the grain
gets into everything, and went to see about lunch.
)text";
}

}  // namespace spillway::tune
