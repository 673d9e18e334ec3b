// The main job on one embedded recording, with a model whose ops a test may have exchanged.
#pragma once
#include <ATen/Parallel.h>

#include <string>
#include <vector>

#include "command.hpp"
#include "jobs/model_job.hpp"

namespace parity::test {

/// `make`: (const Dump&, Precision) -> the ported model. On the recording's number of threads.
template <class Make>
Report model_report(const Make& make, const std::string& dump_name, const std::vector<std::string>& dtypes,
                    Kernels kernels = Kernels::aten, const std::string& layer = "all") {
  const Dump dump(reference_dump(dump_name));
  at::set_num_threads(dump.provenance().value("threads", 1));
  MainJobOptions options;
  options.dtypes = dtypes;
  options.kernels = kernels;
  options.layer = layer;
  Report report;
  report.ops = run_main_job(dump, load_program(dump), make, options).rows;
  return report;
}

/// Each fault {name, put_in(Ops&), first_path} on each recording, in fp64 and the recording's dtype: red, and found
/// where it is made. `report_of(ops, dump, dtypes)` runs it.
template <class Ops, class Faults, class Dumps, class ReportOf>
void check_found_where_made(const Faults& faults, const Dumps& dumps, const ReportOf& report_of) {
  for (const auto& fault : faults)
    for (const std::string dump : dumps) {
      CAPTURE(fault.name);
      CAPTURE(dump);
      Ops ops;
      fault.put_in(ops);
      constexpr size_t kDtype = 4;  // fp32 or bf16, before ".h5"
      const std::vector<std::string> dtypes{"fp64", dump.substr(dump.size() - kDtype - 3, kDtype)};
      const Report report = report_of(ops, dump, dtypes);
      CHECK(exit_status(report) == 1);
      const OpResult* first = first_divergence(report);
      REQUIRE(first != nullptr);
      CHECK(first->candidate_path == fault.first_path);
      CHECK_FALSE(first->diagnosis.empty());
    }
}

}  // namespace parity::test
