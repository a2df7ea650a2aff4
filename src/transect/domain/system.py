"""A system: facts about a machine or cluster that it cannot tell by itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Network(_Model):
    """One of the ways in which nodes reach each other: a fabric, or a link of a virtual cluster."""

    interface: str = Field(description="as `ip link` names it on every compute node, e.g. ib0")
    description: str = ""
    latency_s: float | None = Field(
        default=None, ge=0, description="of a message between two nodes, for forecasts and plans; null: ask a probe"
    )
    bytes_per_s: float | None = Field(
        default=None, gt=0, description="of a link in one direction, for forecasts and plans; null: ask a probe"
    )
    variables: dict[str, str] = Field(default={}, description="set for ranks besides those that choose the interface")


class EnvironmentChoice(_Model):
    """Where an environment comes from instead of a virtual environment made from its lock file."""

    modules: list[str] = Field(default=[], description="loaded, in this order, before python")
    image: str | None = Field(default=None, description="an image: absolute path of a file or folder, or a URI")
    wrapper: Name | None = Field(
        default=None,
        description="who runs the image: a name from [plugins.md](plugins.md#container-wrapper); null: apptainer",
    )
    python: str = Field(
        default="python3",
        description="the interpreter after loading, or inside; alone: that of an environment of conda's",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> EnvironmentChoice:
        own = bool(self.modules) + bool(self.image)
        if own > 1 or not (own or self.python.startswith("/")):
            raise ValueError("give either `modules` or `image`, or the absolute path of a `python`")
        if self.wrapper is not None and not self.image:
            raise ValueError("`wrapper` is who runs the `image`, and there is none")
        return self


class Price(_Model):
    """What an hour of a node costs. A node is paid whole, whatever a cell uses of it."""

    amount: float = Field(ge=0, description="for one node and hour")
    currency: Annotated[str, Field(pattern=r"^\S{1,12}$")] = Field(
        description="as the report is to write it, such as EUR"
    )


class SystemPrice(Price):
    """The price of a system's nodes, as a plan keeps it: it holds for what ran on that system."""

    system: str


class System(_Model):
    """One system file. What it leaves out is asked from the machine or left to the scheduler."""

    name: Name
    description: str = ""
    scheduler: Literal["none", "slurm"] = "none"
    launcher: str = Field(default="plain", description="starts ranks that need no MPI")
    mpi_launcher: str = Field(default="mpiexec", description="starts MPI ranks")
    mpi_type: str = Field(default="pmix", description="srun --mpi=; `srun --mpi=list` shows them")

    nodes: Count = Field(default=1, description="the most nodes that one cell may use")
    cores_per_node: Count | None = Field(
        default=None, description="null: ask the machine; on a cluster no cell is left out for want of cores then"
    )
    gpus_per_node: int = Field(default=0, ge=0)
    memory_mb_per_node: Count | None = Field(
        default=None, description="asked for each node of a job; null: the cluster's default"
    )
    physical_cores: Count | None = Field(
        default=None, description="only where all nodes are one machine: how many cores they share"
    )

    account: str | None = None
    partition: str | None = None
    gpu_partition: str | None = Field(default=None, description="for cells on GPUs")
    gpu_type: str | None = Field(default=None, description="as in --gres=gpu:TYPE:N")
    qos: str | None = None
    constraint: str | None = None
    exclusive: bool = Field(default=False, description="ask for whole nodes")
    block_minutes: Count = Field(default=240, description="the most time that one job of several cells may ask for")
    cells_per_job: Count | None = Field(
        default=None, description="the most cells of one job; 1: every cell is a job of its own"
    )
    overhead_minutes: Count = Field(default=5, description="added to a job's cells: start-up, a slow file system")
    step_energy: bool = Field(
        default=False,
        description="true: Slurm counts the energy of job steps (its `AcctGatherEnergyType` is not `none`), and "
        "sacct is asked for that of each training",
    )

    price_per_node_hour: Price | None = Field(
        default=None, description="gives the cost to quality of a training; null: no cost is shown"
    )
    interconnect: str = ""
    networks: dict[Name, Network] = Field(default={}, description="what `networks` of a study names")
    network: str | None = Field(default=None, description="the one used when a study names none")
    scratch: str | None = Field(
        default=None, description="node-local folder, TMPDIR of payloads; $VARIABLES are the job's"
    )
    environments: dict[Name, EnvironmentChoice] = Field(
        default={}, description="environments that come from modules or images here"
    )
    benchmarks: dict[Name, EnvironmentChoice] = Field(
        default={}, description="modules or images that bring a benchmark's program"
    )
    modules: list[str] = Field(default=[], description="loaded before every payload")
    container: Name | None = Field(
        default=None,
        description="run every environment that is built here in an image made of it, by this wrapper: a name "
        "from [plugins.md](plugins.md#container-wrapper); null: none",
    )

    @property
    def price(self) -> SystemPrice | None:
        """The price of its nodes, with its name."""
        given = self.price_per_node_hour
        return None if given is None else SystemPrice(system=self.name, **given.model_dump())

    @model_validator(mode="after")
    def _known_network(self) -> System:
        if self.network is not None and self.network not in self.networks:
            raise ValueError(f"network '{self.network}' is not among networks {[*self.networks]}")
        return self
