package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/server"
	"github.com/luanette/luanette/internal/store/backup"
)

// backupCommand is `luanette backup`.
type backupCommand struct {
	settingFlags
	File  string        `arg:"" complete:"file" help:"The file to write; - is standard output. An existing file is not overwritten. With --every, the folder."`
	Every time.Duration `help:"Make a backup at this interval, such as 1h, until interrupted. Each is verified by restoring it."`
	Keep  int           `default:"24" help:"With --every, how many backups are kept."`
}

// Help is shown by `luanette backup --help`.
func (backupCommand) Help() string {
	return `Servers may keep running. The backup holds the state of one moment: the database
(SQLite or Postgres), the contents and the other files of the data folder. It
contains secrets, so store it safely.

The file format is the same for both databases. A backup of one may be restored
to the other. A server makes backups itself with the setting backup.every.`
}

// Run writes the backup.
func (c *backupCommand) Run(ctx context.Context, proc *process) (err error) {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return err
	}
	shown := newByteProgress(proc, "packed")
	defer shown.end()
	from, err := server.BackupLocation(loaded, proc.Env)
	if err != nil {
		return err
	}
	options := backup.CreateOptions{Version: version, Progress: shown.progress}
	if c.Every > 0 {
		schedule := backup.Schedule{From: func() (backup.Location, error) { return from, nil }, Folder: c.File, Every: c.Every, Keep: c.Keep, Version: version, Schema: server.BackupSchema(), Log: slog.New(slog.NewTextHandler(proc.Stderr, nil))}
		schedule.Run(ctx)
		return nil
	}
	if c.File == "-" {
		return backup.Create(ctx, from, proc.Stdout, options)
	}
	partial := c.File + ".partial"
	if _, err := os.Stat(c.File); err == nil {
		return fault.New(fault.Conflict, "%s exists already", c.File).WithHint("choose another name; backups are not overwritten")
	}
	if err := backup.WriteFile(ctx, from, partial, options); err != nil {
		return err
	}
	if err := os.Rename(partial, c.File); err != nil {
		return fault.Wrap(fault.Config, err, "write backup")
	}
	shown.end()
	fmt.Fprintf(proc.Stdout, "backed up %s to %s\n", loaded.DataLocation(), c.File)
	return nil
}

// restoreCommand is `luanette restore`.
type restoreCommand struct {
	settingFlags
	File    string `arg:"" complete:"file" help:"The backup; - is standard input."`
	Replace bool   `help:"Move an existing data folder aside."`
}

// Help is shown by `luanette restore --help`.
func (restoreCommand) Help() string {
	return `The data folder and the database change in one step, after the whole backup was
read and its checksums were verified. A Postgres database must be empty, and is
emptied again after an error. The command refuses a folder or database that a
server uses, and a backup of a newer program.`
}

// Run restores the backup.
func (c *restoreCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return err
	}
	shown := newByteProgress(proc, "restored")
	defer shown.end()
	to, err := server.BackupLocation(loaded, proc.Env)
	if err != nil {
		return err
	}
	in, options := proc.Stdin, backup.RestoreOptions{Replace: c.Replace, Schema: server.BackupSchema()}
	if c.File == "-" {
		options.Progress = shown.progress // of what is unpacked: the total is unknown
	} else {
		file, err := os.Open(c.File)
		if err != nil {
			return fault.Wrap(fault.Config, err, "read backup")
		}
		defer func() { _ = file.Close() }()
		in = &countingReader{from: file, progress: shown.progress, total: sizeOf(file)}
	}
	restored, err := backup.Restore(ctx, to, bufio.NewReaderSize(in, 1<<16), options)
	shown.end()
	for _, folder := range restored.Removed {
		fmt.Fprintf(proc.Stderr, "removed %s, the folder of an aborted restore\n", folder)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(proc.Stdout, "restored %s, as of %s\n", loaded.DataLocation(), restored.Created.Format(time.RFC3339))
	for _, hash := range restored.Damaged {
		fmt.Fprintf(proc.Stdout, "the content %s was damaged when it was backed up\n", hash)
	}
	if restored.Aside != "" {
		fmt.Fprintf(proc.Stdout, "the former data folder is now %s\n", restored.Aside)
	}
	return nil
}

// countingReader counts the bytes that were read from a file.
type countingReader struct {
	from        io.Reader
	progress    backup.Progress
	done, total int64
}

func (c *countingReader) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.done += int64(n)
	c.progress(c.done, c.total)
	return n, err
}

// sizeOf returns zero if the file has no size, such as a pipe.
func sizeOf(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// byteProgress shows on a terminal how many bytes were copied.
type byteProgress struct {
	out   io.Writer // nil if it is not a terminal
	verb  string
	last  time.Time
	shown bool
}

func newByteProgress(proc *process, word string) *byteProgress {
	s := &byteProgress{verb: word}
	if terminalWidth(proc.Stderr) > 0 {
		s.out = proc.Stderr
	}
	return s
}

func (s *byteProgress) progress(done, total int64) {
	if s.out == nil || time.Since(s.last) < 100*time.Millisecond {
		return
	}
	s.last, s.shown = time.Now(), true
	of := ""
	if total > 0 {
		of = fmt.Sprintf(" of %.1f", float64(total)/1e6)
	}
	fmt.Fprintf(s.out, "\r\x1b[K%s %.1f%s MB", s.verb, float64(done)/1e6, of)
}

func (s *byteProgress) end() {
	if s.shown {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.shown = false
	}
}

var _ backup.Progress = (*byteProgress)(nil).progress
