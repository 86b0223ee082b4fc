package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// untilSealed is longer than the service waits before it adds what is new to the log.
const untilSealed = 3 * time.Second

var bytesColumns = []string{"engine", "side", "work", "records", "bytes stored of one", "bytes in the database's log of one"}

// measureBytes measures how much a sale and a push add to a store of their own.
func (b *bank) measureBytes(ctx context.Context, s settings, r *report, progress io.Writer) error {
	for _, v := range b.versions {
		for _, w := range []work{plainSale, plainPush} {
			row, proof, err := b.bytesOf(ctx, v, w, s)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			fmt.Fprintln(progress, strings.Join(row, ", "))
			r.add("What one record adds to the database, with its indexes and the trail, and to the log that the database writes.", bytesColumns, row...)
			r.proofs = append(r.proofs, b.engine.name()+", "+v.name+", bytes of "+w.name+": "+proof)
		}
	}
	return nil
}

func (b *bank) bytesOf(ctx context.Context, v version, w work, s settings) (row []string, proof string, err error) {
	o, err := b.newStore(ctx, "bytes_"+w.name+"_"+v.purpose(), v.binary, s.service)
	if err != nil {
		return nil, "", err
	}
	o.key, err = o.program.prepare(1)
	if err != nil {
		return nil, "", err
	}
	err = o.serve(v.name, 1)
	if err != nil {
		return nil, "", err
	}
	defer o.stop()
	err = warmUp(ctx, s.length(), []work{w}, o.served)
	if err != nil {
		return nil, "", err
	}
	pause(ctx, untilSealed)
	before, err := b.engine.used(ctx, o.dsn)
	if err != nil {
		return nil, "", err
	}
	done := 0
	for done < s.records && ctx.Err() == nil {
		m, err := o.served.run(ctx, w, 16, s.length())
		if err != nil {
			return nil, "", err
		}
		done += m.tally.completed * w.records
	}
	pause(ctx, untilSealed)
	after, err := b.engine.used(ctx, o.dsn)
	if err != nil {
		return nil, "", err
	}
	proof, err = o.prove()
	logged := "not measured"
	if after.logged > 0 {
		logged = strconv.FormatInt((after.logged-before.logged)/int64(done), 10)
	}
	return []string{
		b.engine.name(), v.name, w.title, strconv.Itoa(done), strconv.FormatInt((after.stored-before.stored)/int64(done), 10), logged,
	}, proof, err
}
