package bootstrap

// Version is the version of the service. It is written here only: the command version, the log,
// metrics, traces and the files of a release have it from here.
const Version = "1.0.0"
