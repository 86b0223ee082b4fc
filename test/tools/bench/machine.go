package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A fact is one line of the description of the environment.
type fact struct{ name, value string }

// describeMachine returns what Linux reports about the machine. On other
// systems it returns less.
func describeMachine() []fact {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	memory, _ := os.ReadFile("/proc/meminfo")
	kib, _ := strconv.Atoi(strings.TrimSuffix(procValue(memory, "MemTotal"), " kB"))
	return []fact{
		{"CPU", procValue(cpu, "model name")},
		{"Cores", strconv.Itoa(runtime.NumCPU())},
		{"Memory", fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))},
		{"Kernel", runtime.GOOS + " " + string(bytes.TrimSpace(kernel))},
		{"Go", runtime.Version()},
	}
}

// procValue finds "name : value" in a file of /proc.
func procValue(file []byte, name string) string {
	for line := range strings.Lines(string(file)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// memoryBytes returns the resident memory of a process (VmRSS), or the most that it had
// (VmHWM).
func memoryBytes(pid int, name string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	kib, _ := strconv.ParseInt(strings.TrimSuffix(procValue(status, name), " kB"), 10, 64)
	return kib << 10
}

// tick is the unit of CPU time in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// A clock is the processor time used up to a moment, by program.
type clock struct {
	at                                 time.Time
	busy, generator, service, database time.Duration
}

// usage is processor time per time, in cores. foreign is the time of other
// programs on the machine.
type usage struct{ generator, service, database, foreign float64 }

// readClock reads the times of the machine, this process with its ended children, such as
// pgbench, the services and every Postgres process on this machine.
func readClock(services ...int) clock {
	c := clock{at: time.Now(), busy: busyTime()}
	own, children := processTime(os.Getpid())
	c.generator = own + children
	for _, pid := range services {
		own, _ := processTime(pid)
		c.service += own
	}
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		// Processes may end meanwhile. Their time is not counted.
		comm, _ := os.ReadFile(name)
		if string(comm) == "postgres\n" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			own, children := processTime(pid)
			c.database += own + children
		}
	}
	return c
}

// busyTime returns the busy time of all cores.
func busyTime() time.Duration {
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	var busy time.Duration
	for i, field := range strings.Fields(line) {
		// cpu user nice system idle iowait irq softirq steal
		if n, err := strconv.Atoi(field); err == nil && i != 4 && i != 5 && i < 9 {
			busy += time.Duration(n) * tick
		}
	}
	return busy
}

// processTime returns the user and kernel time of a process and of its ended children.
func processTime(pid int) (own, children time.Duration) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name in parentheses may contain spaces, so count after it.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0
	}
	var ticks [4]time.Duration
	for i := range ticks {
		n, _ := strconv.Atoi(fields[11+i])
		ticks[i] = time.Duration(n) * tick
	}
	return ticks[0] + ticks[1], ticks[2] + ticks[3]
}

func (c clock) since(before clock) usage {
	cores := func(now, then time.Duration) float64 {
		return max(0, (now-then).Seconds()/c.at.Sub(before.at).Seconds())
	}
	u := usage{
		generator: cores(c.generator, before.generator),
		service:   cores(c.service, before.service),
		database:  cores(c.database, before.database),
	}
	u.foreign = max(0, cores(c.busy, before.busy)-u.generator-u.service-u.database)
	return u
}

// quietCores is what other programs may use while a run waits for none. The figures of a run
// include how many cores they used.
const quietCores = 0.15

// waitQuiet returns when no other program uses the machine, or when all runs have waited enough.
func (b *bank) waitQuiet(ctx context.Context) {
	const look = 250 * time.Millisecond
	for b.patience > 0 && ctx.Err() == nil {
		before := readClock()
		pause(ctx, look)
		u := readClock().since(before)
		if u.foreign+u.database < quietCores {
			return
		}
		b.patience -= look
	}
}
