// A hardware profile as a result, so that a report shows it.
#pragma once

#include "report/result.h"
#include "tune/profile_file.h"

namespace spillway::tune {

// Of kind "probe": machine, every quantity as a term with label, spread and the reason where it was not
// measured, links, waits and limits as terms of tables of their own, rates over threads and tokens as curves.
report::ResultFile result_of(const ProfileFile& file);

}  // namespace spillway::tune
