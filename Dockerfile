# Umklapp in a container.
#   docker build -t umklapp .
#   docker run --rm -v "$PWD":/work umklapp run script.rhai
# A GPU is used where the container has one: docker run --gpus all ..
FROM rust:1-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip
WORKDIR /src
COPY . .
RUN NVCC="$(.ci/nvcc)" cargo build --release --locked && strip target/release/umklapp

FROM debian:bookworm-slim
# An MPI, for ranks on one machine.
RUN apt-get update && apt-get install -y --no-install-recommends mpich && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/umklapp /usr/local/bin/umklapp
WORKDIR /work
ENTRYPOINT ["umklapp"]
