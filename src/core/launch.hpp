// One of several processes that a launcher (mpirun, srun) started with the same command line.
#pragma once

namespace parity {

struct Launch {
  int rank = 0, size = 1;
};

/// As the launcher put it into the environment: Open MPI's OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and PMI_SIZE
/// (MPICH, Intel MPI), SLURM_PROCID and SLURM_STEP_NUM_TASKS (srun). One process alone when nothing sensible is there.
Launch launch();

}  // namespace parity
