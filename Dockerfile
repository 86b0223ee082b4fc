# syntax=docker/dockerfile:1

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -buildid=" -o /out/bankingapi ./cmd/bankingapi && \
    mkdir /out/data

# The image has the program and nothing else: no shell and no package manager. The
# program writes only to /data, so the root file system may be read-only.
FROM scratch
COPY --from=build /out/bankingapi /bankingapi
COPY --from=build --chown=65532:65532 --chmod=0700 /out/data /data
WORKDIR /
USER 65532:65532
# SQLite and Go write temporary files to TMPDIR.
ENV BANKINGAPI_HTTP__ADDRESS=0.0.0.0:8443 TMPDIR=/data
VOLUME /data
EXPOSE 8443
HEALTHCHECK --interval=3s --timeout=6s --start-period=30s CMD ["/bankingapi", "healthcheck"]
ENTRYPOINT ["/bankingapi"]
CMD ["serve"]
