# Umklapp in a container.
#   docker build -t umklapp .
#   docker run --rm -v "$PWD":/work umklapp run script.rhai
# With --user "$(id -u):$(id -g)" the files that scripts write are yours. A GPU is used where the container has one:
# docker run --gpus all ..
FROM rust:1-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip
WORKDIR /src
COPY . .
# In two steps: a compiler that does not come stops the build, which would go on without GPU kernels otherwise.
RUN nvcc="$(.ci/nvcc)" && NVCC="$nvcc" cargo build --release --locked && strip target/release/umklapp

FROM debian:bookworm-slim
# An MPI, for ranks on one machine.
RUN apt-get update && apt-get install -y --no-install-recommends mpich && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/umklapp /usr/local/bin/umklapp
WORKDIR /work
ENTRYPOINT ["umklapp"]
