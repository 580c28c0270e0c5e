package audit

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/store/db"
)

// A spool is a file of this process with entries that the database has not accepted yet, so
// that they survive the process: the next one on the same folder adds them to the chain. It
// exists only while the database does not accept any.

// How long an entry may wait for the database before it is spooled, and how often new ones
// are after that.
const (
	spoolAfter    = time.Second
	spoolInterval = 250 * time.Millisecond
)

// Names of the files of a spool.
const (
	spoolExt = ".jsonl"
	lockExt  = ".lock" // held while the process lives
)

type spool struct {
	folder string // "" if there is none
	name   string // of this process
	lock   *filelock.Lock
	file   *os.File // nil if nothing is spooled
	count  int      // entries of the log until the last one in the file
	failed error    // of the last attempt
}

func newSpool(folder string) spool { return spool{folder: folder, name: rand.Text()} }

// path is the path of a file of the spool of a process.
func (s *spool) path(name, ext string) string { return filepath.Join(s.folder, name+ext) }

// open makes the file, if there is none.
func (s *spool) open() (err error) {
	if s.file != nil {
		return nil
	}
	if s.lock == nil {
		if s.lock, err = filelock.Try(s.path(s.name, lockExt)); err != nil {
			return err
		}
	}
	s.file, err = os.OpenFile(s.path(s.name, spoolExt), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return err
}

// append writes entries to the disk.
func (s *spool) append(entries []Entry) error {
	if err := s.open(); err != nil {
		return err
	}
	out := bufio.NewWriter(s.file)
	lines := json.NewEncoder(out)
	for i := range entries {
		if err := lines.Encode(&entries[i]); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), s.file.Sync())
}

// remove removes the files. The lock is released last, so that no other process takes them
// for those of a dead one.
func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Close(), os.Remove(s.path(s.name, spoolExt)), s.unlock(s.name, s.lock))
	s.file, s.lock = nil, nil
	return err
}

func (s *spool) unlock(name string, lock *filelock.Lock) error {
	return errors.Join(os.Remove(s.path(name, lockExt)), lock.Unlock())
}

// leave leaves the file to the next process.
func (s *spool) leave() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), s.lock.Unlock())
}

// spoolWhileWaiting spools entries while a batch is being written, if that takes long, until
// stop is called.
func (l *Log) spoolWhileWaiting() (stop func()) {
	if l.spool.folder == "" {
		return func() {}
	}
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		next := time.NewTimer(spoolAfter)
		defer next.Stop()
		for {
			select {
			case <-done:
				return
			case <-next.C:
				_ = l.spoolNow() // it is logged
				next.Reset(spoolInterval)
			}
		}
	})
	return func() { close(done); work.Wait() }
}

// spoolNow spools the entries that are neither in the database nor in the spool. While it
// fails they are in memory only, which it says once.
func (l *Log) spoolNow() error {
	if l.spool.folder == "" {
		return errNoSpool
	}
	l.spooling.Lock()
	defer l.spooling.Unlock()
	l.mu.Lock()
	from := max(l.spool.count, l.settled)
	fresh := slices.Concat(l.taken, l.pending)[from-l.settled:]
	upTo := l.accepted
	l.mu.Unlock()
	if len(fresh) == 0 {
		return l.spool.failed
	}
	err := l.spool.append(fresh)
	if err == nil {
		l.spool.count = upTo
	} else if l.spool.failed == nil {
		l.options.Log.Error("audit entries that wait for the database are in memory only", "error", err)
	}
	l.spool.failed = err
	return err
}

var errNoSpool = errors.New("there is no folder for audit entries that wait")

// emptySpool removes the file when all its entries are in the database.
func (l *Log) emptySpool() {
	l.spooling.Lock()
	defer l.spooling.Unlock()
	l.mu.Lock()
	stored := l.settled >= l.spool.count && l.kept == 0
	l.mu.Unlock()
	if !stored {
		return
	}
	if err := l.spool.remove(); err != nil {
		l.options.Log.Warn("file of audit entries that waited not removed", "error", err)
	}
}

// recover adds what earlier processes have left in their spools to the chain.
func (l *Log) recover(ctx context.Context) {
	if l.spool.folder == "" {
		return
	}
	paths, _ := filepath.Glob(l.spool.path("*", spoolExt)) // the pattern is right
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), spoolExt)
		count, err := l.recoverFile(ctx, name)
		switch {
		case err != nil:
			l.options.Log.WarnContext(ctx, "audit entries of an earlier run not stored, trying again at the next start", "file", path, "error", err)
		case count > 0:
			l.options.Log.InfoContext(ctx, "audit entries of an earlier run stored", "entries", count)
		}
	}
}

// recoverFile stores the entries of the spool of a process that has ended, and removes it.
func (l *Log) recoverFile(ctx context.Context, name string) (count int, err error) {
	lock, err := filelock.Try(l.spool.path(name, lockExt))
	if lock == nil || err != nil {
		return 0, err // the process lives
	}
	entries, err := readSpool(l.spool.path(name, spoolExt))
	if err == nil {
		entries, err = l.withoutStored(ctx, entries)
	}
	for batch := range slices.Chunk(entries, maxBatch) {
		if err == nil {
			err = l.add(ctx, l.options.Node, batch)
		}
	}
	if err != nil {
		return 0, errors.Join(err, lock.Unlock())
	}
	err = os.Remove(l.spool.path(name, spoolExt))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // another process was faster
	}
	return len(entries), errors.Join(err, l.spool.unlock(name, lock))
}

// readSpool reads entries up to the end, or to a line that was being written when the process
// was killed.
func readSpool(path string) (entries []Entry, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	for lines := json.NewDecoder(file); ; {
		var e Entry
		if err := lines.Decode(&e); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return entries, nil
		} else if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
}

// withoutStored returns the entries that are not in the log: the process may have been killed
// after it had stored some.
func (s *Store) withoutStored(ctx context.Context, entries []Entry) (missing []Entry, err error) {
	for i := range entries {
		entries[i].settle()
		stored, err := db.Find(ctx, s.db, db.Column[string], `SELECT entry FROM audit_log WHERE at = $1`, entries[i].At.UnixMicro())
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(stored, func(text string) bool { return isStored(text, entries[i]) }) {
			missing = append(missing, entries[i])
		}
	}
	return missing, nil
}

// isStored reports whether a stored text is that of an entry, wherever it is in the chain.
func isStored(text string, e Entry) bool {
	stored, err := decode(text)
	stored.Node, stored.Seq, stored.Prev, stored.Hash = e.Node, e.Seq, e.Prev, e.Hash
	stored.At = e.At
	return err == nil && stored == e
}

// Lost is the action of an entry that says how many entries before it were lost: nothing could
// take them. Their number is the size.
const Lost = "audit.lost"

// noteLost counts entries that are lost; mu is held.
func (l *Log) noteLost(count int) { l.lost += count }

// recordLost records how many entries were lost, once entries can be written again.
func (l *Log) recordLost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == 0 || l.closed {
		return
	}
	l.accepted++
	l.pending = append(l.pending, Entry{At: l.options.Clock.Now(), Action: Lost, Subject: strconv.Itoa(l.lost) + " entries", Size: int64(l.lost)})
	l.lost = 0
	l.signal()
}
