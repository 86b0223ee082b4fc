package command

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/settings"
	"bankingapi/test/kit/golden"
)

// TestReadmeHasEveryCommandAndSetting: both tables of README.md are made of the
// commands and settings themselves.
func TestReadmeHasEveryCommandAndSetting(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	page := string(content)
	for title, table := range map[string]string{"commands": commandTable(), "settings": settingTable()} {
		before, rest, found := strings.Cut(page, "<!-- "+title+":")
		require.True(t, found, title)
		mark, rest, found := strings.Cut(rest, "-->\n")
		require.True(t, found, title)
		_, after, found := strings.Cut(rest, "<!-- end -->")
		require.True(t, found, title)
		page = before + "<!-- " + title + ":" + mark + "-->\n" + table + "<!-- end -->" + after
	}
	if *golden.Update {
		golden.Write(t, "../README.md", page)
		return
	}
	require.Equal(t, page, string(content), "make generate writes the tables")
}

var columnNames = regexp.MustCompile("`([A-Za-z]+)`")

// The people who read an export have no program and no source. The page has each column in the order of
// the file, and one table for each export.
func TestThePageOfTheExportsHasEachColumn(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../EXPORTS.md")
	require.NoError(t, err)
	var listed [][]string
	for table := range strings.SplitSeq(string(content), "| column | meaning |\n|---|---|\n") {
		var columns []string
		for row := range strings.Lines(table) {
			if !strings.HasPrefix(row, "|") {
				break
			}
			cell, _, _ := strings.Cut(row[1:], " | ")
			for _, name := range columnNames.FindAllStringSubmatch(cell, -1) {
				columns = append(columns, name[1])
			}
		}
		listed = append(listed, columns)
	}
	b := newOperated(t)
	var exported [][]string
	kinds := []string{"prices", "holdings", "accounts", "calendar", "sales", "postings", "notifications", "operations", "outcomes", "requests", "audit"}
	for _, kind := range kinds {
		header, _, _ := strings.Cut(b.must(t, "export", kind), "\n")
		exported = append(exported, strings.Split(header, ","))
	}
	require.Equal(t, exported, listed[1:], "in the order of %v", kinds)
}

func commandTable() string {
	var table strings.Builder
	table.WriteString("| command | does |\n|---|---|\n")
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "bankingapi ")
		if slices.ContainsFunc(rows(), func(r row) bool { return r.path == path }) { // rules has subcommands too
			use := strings.TrimPrefix(cmd.Parent().CommandPath()+" "+cmd.Use, "bankingapi ")
			fmt.Fprintf(&table, "| `%s` | %s |\n", tableCell(use), tableCell(cmd.Short))
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	root := program{}.root()
	for _, cmd := range root.Commands() {
		visit(cmd)
	}
	return table.String()
}

func settingTable() string {
	var table strings.Builder
	table.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range settings.All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", s.Path, tableCell(s.Default), tableCell(s.Usage))
	}
	return table.String()
}

func tableCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
