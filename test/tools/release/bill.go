package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// cyclonedx writes the bills of materials. Another version may write other bytes.
const cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0"

// bills makes a bill of materials for each archive, from the modules that its program names.
func bills(ctx context.Context, s source, out string, archives []string, log io.Writer) (made []string, err error) {
	work, err := os.MkdirTemp("", "bills")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for _, archive := range archives {
		folder, _, _ := platformOf(archive)
		fmt.Fprintf(log, "making %s.cdx.json\n", folder)
		program, err := programOf(filepath.Join(out, archive))
		if err != nil {
			return nil, err
		}
		file := filepath.Join(work, name)
		if err := os.WriteFile(file, program, 0o700); err != nil {
			return nil, err
		}
		text, err := run(ctx, work, []string{"GOFLAGS="}, "go", "run", cyclonedx, "bin", "-json", "-noserial", "-std", "-version", s.version, file)
		if err != nil {
			return nil, err
		}
		bill, err := dated(text, s.time)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(out, folder+".cdx.json"), bill, 0o644); err != nil {
			return nil, err
		}
		made = append(made, folder+".cdx.json")
	}
	return made, nil
}

// dated gives a bill of materials the time of the commit in place of that of its making.
func dated(text string, at time.Time) ([]byte, error) {
	var bill map[string]any
	if err := json.Unmarshal([]byte(text), &bill); err != nil {
		return nil, err
	}
	about, ok := bill["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a bill of materials without metadata: %.100s", text)
	}
	about["timestamp"] = at.Format(time.RFC3339)
	made, err := json.MarshalIndent(bill, "", "  ")
	return append(made, '\n'), err
}
