// Package owner gives the files that root makes beside a book to the user of the service.
//
// A command that root runs in the data folder would make files that the service, which runs as
// another user, cannot open. So a new file gets the owner of the file that it replaces, or of its
// folder. Nothing changes if the process is not root.
package owner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Create opens a file that it makes if it does not exist, as os.OpenFile with os.O_CREATE does. A
// new file gets the owner of its folder.
func Create(name string, flag int, mode fs.FileMode) (*os.File, error) {
	_, err := os.Lstat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	file, err := os.OpenFile(name, flag|os.O_CREATE, mode)
	if err != nil || !isNew {
		return file, err
	}
	if err := give(file, filepath.Dir(name)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Keep gives a file the owner of the file that it will replace. If there is none, the file keeps
// its owner.
func Keep(file *os.File, replaced string) error {
	if _, err := os.Lstat(replaced); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return give(file, replaced)
}

// MakeFolder makes a folder and those above it that do not exist. Each gets the owner of the
// folder above it.
func MakeFolder(name string) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	above := filepath.Dir(name)
	if above != name {
		if err := MakeFolder(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(give(folder, above), folder.Close())
}
