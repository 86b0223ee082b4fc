package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"bankingapi/application/store"
)

// hostSettings are the settings of a database that a host has opened.
type hostSettings struct {
	File, Journal     string
	Synchronous, Busy int
}

// settingsOf reads the settings of one connection. The host must use them for all connections.
func settingsOf(ctx context.Context, db *sql.DB) (s hostSettings, err error) {
	err = db.QueryRowContext(ctx, "SELECT (SELECT file FROM pragma_database_list WHERE name = 'main'), (SELECT * FROM pragma_journal_mode),"+
		" (SELECT * FROM pragma_synchronous), (SELECT * FROM pragma_busy_timeout)").Scan(&s.File, &s.Journal, &s.Synchronous, &s.Busy)
	return s, err
}

// usable returns an error if answers could not be correct with these settings.
func (s hostSettings) usable(writes, reads *sql.DB) error {
	switch {
	case s.Journal == "off":
		return errors.New("the database has journal_mode = OFF and cannot roll back: open it with _pragma=journal_mode(WAL)")
	case s.File == "" && (writes != reads || writes.Stats().MaxOpenConnections != 1):
		return errors.New("the database is in memory, and each connection has its own: use one *sql.DB with SetMaxOpenConns(1), or a file")
	}
	return nil
}

// The settings that may lose data.
var riskySettings = []struct {
	isSet func(hostSettings) bool
	risk  store.Risk
}{
	{func(s hostSettings) bool { return s.File == "" }, store.Risk{Unsafe: true, Detail: "The database is in memory. Everything is lost when the process ends. Use a file."}},
	{func(s hostSettings) bool { return s.File != "" && s.Journal == "memory" }, store.Risk{Unsafe: true, Detail: "The database has journal_mode = MEMORY. If the process crashes, the database may be damaged. Use journal_mode(WAL)."}},
	{func(s hostSettings) bool {
		return s.File != "" && (s.Synchronous == 0 || s.Synchronous == 1 && s.Journal == "wal")
	}, store.Risk{Unsafe: true,
		Detail: "The database does not sync each commit. If the machine crashes, acknowledged operations are lost. Use synchronous(FULL)."}},
	{func(s hostSettings) bool { return s.File != "" && s.Busy == 0 }, store.Risk{CanWait: true, Detail: "The database has no busy_timeout. While another connection writes, requests are answered 503. Use busy_timeout(5000)."}},
}

// risks is Risks of storage.Engine for a database that a host has opened.
func risks(ctx context.Context, db *sql.DB) (list []store.Risk, err error) {
	host, err := settingsOf(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, r := range riskySettings {
		if r.isSet(host) {
			list = append(list, r.risk)
		}
	}
	return list, nil
}

// logSize returns the size of the write-ahead log of a database file. There may be none.
func logSize(path string) int64 {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// longestLog is the size of the log from which it is a risk: twice as much as it should ever reach.
const longestLog = 512 << 20

// longLog reports a log that grows because a program keeps reading the same state.
func longLog(size int64) []store.Risk {
	if size < longestLog {
		return nil
	}
	return []store.Risk{{Detail: fmt.Sprintf("The write-ahead log of the book has %d MiB. A program has been reading one state of the book all the time,"+
		" such as a shell with an open transaction or a stopped command. The log grows until this program ends: stop it.", size>>20)}}
}
