// The tables of a page. Those without rows are left out by the caller.
#pragma once

#include "report/page.h"

namespace spillway::report {

// What the verdicts of its rows are about: "Decode against the first".
std::string verdict_title(const ResultFile& result);
Table table_of_rows(std::string title, const ResultFile& result, std::span<const Row* const> rows);
// Everything that was slower than the first row, with both speeds.
Table table_of_slower(const ResultFile& result);
// A table for each group of terms, in the order of their first ones.
std::vector<Table> tables_of_terms(const ResultFile& result);
// A row for each curve, a column for each x.
Table table_of_curves(const CurveSet& set);
Table table_of_runs(const ResultFile& result);
// What ran where: build, model, machine, workload, command.
Table table_of_origin(const ResultFile& result);
// The flags in which the settings differ, and all flags of all settings.
Table table_of_differing_flags(const ResultFile& result);
Table table_of_all_flags(const ResultFile& result);
// Of several results: what each is, and in what it differs from the first.
Table table_of_results(std::span<const NamedResult> results);

}  // namespace spillway::report
