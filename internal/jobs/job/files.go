package job

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Kept stores what was in files before jobs changed them.
type Kept interface {
	// Keep stores all of r for as long as the row lasts that record adds.
	Keep(ctx context.Context, r io.Reader, record func(tx *db.Tx, ref cas.Ref) error) error
	// Open opens a stored content.
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
}

// fileRow is one change of a file by a job.
type fileRow struct {
	step          int64
	path          string
	before, after cas.Ref
	kept          cas.Ref // the content before the first change of the file
	mode          fs.FileMode
	problem       string
}

// fileRows returns what a job changed in files, in the order of the changes.
func (q *Queue) fileRows(ctx context.Context, job string) ([]fileRow, error) {
	return db.Find(ctx, q.db, func(row db.Scanner) (r fileRow, err error) {
		var before, kept, after string
		if err := row.Scan(&r.step, &r.path, &before, &kept, &r.mode, &after, &r.problem); err != nil {
			return r, err
		}
		return r, errors.Join(r.before.UnmarshalText([]byte(before)), r.kept.UnmarshalText([]byte(kept)), r.after.UnmarshalText([]byte(after)))
	}, "SELECT step, path, before, kept, mode, after, problem FROM job_files WHERE job = $1 ORDER BY place", job)
}

// fileKeeper keeps what one job changes in files.
type fileKeeper struct {
	queue *Queue
	job   string

	mu       sync.Mutex
	count    int
	known    map[string]bool  // paths that were changed before
	problems map[int64]string // by step
}

// keepFiles returns handler so that changes of files by a job can be undone. The job may have
// a past.
func (q *Queue) keepFiles(ctx context.Context, j Job, past []host.Step, handler host.Handler) (host.Handler, error) {
	if q.options.Kept == nil {
		return handler, nil
	}
	k := &fileKeeper{queue: q, job: j.ID, known: map[string]bool{}, problems: map[int64]string{}}
	if len(past) == 0 && !j.resumed {
		return host.KeepFiles(handler, k), nil
	}
	rows, err := q.fileRows(ctx, j.ID)
	for _, r := range rows {
		k.note(r.path, r.step, r.problem)
	}
	return host.KeepFiles(handler, k), err
}

// note notes a change of a file, and returns its place among all changes and whether it is
// the first of that file. A problem is told once for each file.
func (k *fileKeeper) note(path string, step int64, problem string) (place int, first bool) {
	if first = !k.known[path]; first && problem != "" {
		k.problems[step] = problem
	}
	k.known[path] = true
	k.count++
	return k.count, first
}

// Keep stores what a file has, if it is the first change of the file by this job. If it
// cannot be stored, the change cannot be undone.
func (k *fileKeeper) Keep(ctx context.Context, c host.FileChange) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	place, first := k.note(c.Path, c.Seq, c.Problem)
	row := fileRow{step: c.Seq, path: c.Path, mode: c.Mode, after: c.After, problem: c.Problem}
	if c.Existed {
		row.before = cas.Sum(c.Before)
	}
	if !first || !c.Existed {
		return k.store(ctx, place, row)
	}
	err := k.queue.options.Kept.Keep(ctx, bytes.NewReader(c.Before), func(tx *db.Tx, ref cas.Ref) error {
		kept := row
		kept.before, kept.kept = ref, ref
		return k.insert(ctx, tx, place, kept)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	row.problem = fmt.Sprintf("what was in the file could not be stored: %s", fault.From(err).Error())
	k.problems[c.Seq] = row.problem
	return k.store(ctx, place, row)
}

func (k *fileKeeper) store(ctx context.Context, place int, row fileRow) error {
	return k.queue.db.Write(ctx, func(tx *db.Tx) error { return k.insert(ctx, tx, place, row) })
}

// insert stores a change. An effect that is repeated after a crash keeps what was there
// before its first try.
func (k *fileKeeper) insert(ctx context.Context, tx *db.Tx, place int, r fileRow) error {
	_, err := tx.Exec(ctx, `INSERT INTO job_files (job, step, place, path, before, kept, mode, after, problem) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (job, step) DO UPDATE SET after = excluded.after`,
		k.job, r.step, place, r.path, hashText(r.before), hashText(r.kept), int64(r.mode), hashText(r.after), r.problem)
	return err
}

// Failed stores what a change that failed left in the file.
func (k *fileKeeper) Failed(ctx context.Context, seq int64, after cas.Ref) error {
	return k.queue.db.Exec(ctx, "UPDATE job_files SET after = $3 WHERE job = $1 AND step = $2", k.job, seq, hashText(after))
}

// Problem returns why a change cannot be undone.
func (k *fileKeeper) Problem(seq int64) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problems[seq]
}

func hashText(ref cas.Ref) string {
	if ref.IsZero() {
		return ""
	}
	return ref.String()
}

// copyFiles copies what a job changed in files to another one that continues it.
func copyFiles(ctx context.Context, tx *db.Tx, from, to string) error {
	_, err := tx.Exec(ctx, `INSERT INTO job_files (job, step, place, path, before, kept, mode, after, problem)
		SELECT $2, step, place, path, before, kept, mode, after, problem FROM job_files WHERE job = $1`, from, to)
	return err
}

// fileUndo is how all changes of one file by a job are undone together.
type fileUndo struct {
	path  string
	steps []int64 // in the order of the changes
	file  host.ChangedFile
}

func (u fileUndo) last() int64 { return u.steps[len(u.steps)-1] }

// undo is the step that undoes the changes, the last of which is call.
func (u fileUndo) undo(job, call string) UndoStep {
	arguments, _ := json.Marshal(map[string]string{"path": u.path, "job_id": job}) // texts always encode
	return UndoStep{Step: u.last(), Call: call, File: u.path, Tool: tool.Ref{Space: "fs", Name: "restore"}, Arguments: arguments, job: job}
}

// withoutJournal returns what undoes changes whose effects the journal does not have: the
// process died before they were recorded, and the job did not go on.
func withoutJournal(files []fileUndo, steps []host.Step, job string) (undo []UndoStep) {
	for _, u := range files {
		if !slices.ContainsFunc(steps, func(s host.Step) bool { return s.Seq == u.last() }) {
			undo = append(undo, u.undo(job, "change of "+u.path))
		}
	}
	return undo
}

// inFolder reports whether a step changed a file in the job's own folder, which was removed
// with the job.
func (q *Queue) inFolder(job string, s host.Step) bool {
	folder := q.folder(job)
	if folder == "" || s.Called() || len(s.Args) == 0 {
		return false
	}
	path, _ := s.Args[0].(string)
	return strings.HasPrefix(path, folder+string(filepath.Separator))
}

// fileUndos returns how the changes of files by a job are undone.
func (q *Queue) fileUndos(ctx context.Context, job string) (undos []fileUndo, err error) {
	rows, err := q.fileRows(ctx, job)
	for _, r := range rows {
		i := slices.IndexFunc(undos, func(u fileUndo) bool { return u.path == r.path })
		if i < 0 {
			i = len(undos)
			undos = append(undos, fileUndo{path: r.path, file: host.ChangedFile{
				Before: r.before, After: r.before, Mode: r.mode,
				Content: func(ctx context.Context) (io.ReadCloser, error) { return q.options.Kept.Open(ctx, r.kept) },
			}})
		}
		u := &undos[i]
		if u.file.After != r.before && r.problem == "" {
			r.problem = "somebody else changed the file while the job ran"
		}
		u.file.Problem = cmp.Or(u.file.Problem, r.problem)
		u.file.After, u.steps = r.after, append(u.steps, r.step)
	}
	return undos, err
}

// ChangedFile returns what a job, which the principal may undo, changed in a file.
func (s ForScripts) ChangedFile(ctx context.Context, id, path string) (host.ChangedFile, error) {
	if err := s.Queue.check(ctx, principal.Job, principal.Edit, id); err != nil {
		return host.ChangedFile{}, err
	}
	undos, err := s.Queue.fileUndos(ctx, id)
	if err != nil {
		return host.ChangedFile{}, err
	}
	i := slices.IndexFunc(undos, func(u fileUndo) bool { return u.path == path })
	if i < 0 {
		return host.ChangedFile{}, fault.New(fault.NotFound, "job %s did not change the file %s", id, path).
			WithHint("job_undo lists what it changed; files that it wrote in its temp folder are gone")
	}
	return undos[i].file, nil
}

// tryRestore is a script that tries which files can be restored.
const tryRestore = `function main(undo)
  local found = json.array {}
  for i, path in ipairs(undo.paths) do
    local ok, done = pcall(fs.restore, path, undo.job)
    found[i] = ok and { done = done } or { problem = done.message }
  end
  return found
end
`

// restorable says of which steps the files cannot be restored now, and leaves out those whose
// files are already what they were.
func (q *Queue) restorable(ctx context.Context, job string, steps []UndoStep) ([]UndoStep, error) {
	paths := []string{}
	for _, s := range steps {
		if s.File != "" {
			paths = append(paths, s.File)
		}
	}
	if len(paths) == 0 {
		return steps, nil
	}
	params, err := json.Marshal(map[string]any{"job": job, "paths": paths})
	if err != nil {
		return nil, err
	}
	outcome, err := q.rehearse(ctx, newID(), Spec{Name: "undo", Source: tryRestore, Language: "lua", Params: params}, host.NewRehearsal(nil, nil, nil))
	if err != nil {
		return nil, err
	}
	var found []struct{ Done, Problem string }
	if err := json.Unmarshal(outcome.Result, &found); err != nil || len(found) != len(paths) {
		return nil, fault.New(fault.Internal, "try which files can be restored: got %s", outcome.Result)
	}
	var left []UndoStep
	for _, s := range steps {
		if s.File != "" {
			try := found[0]
			found = found[1:]
			if try.Done == "unchanged" {
				continue
			}
			s.Problem = strings.TrimPrefix(try.Problem, "restore "+s.File+": ")
		}
		left = append(left, s)
	}
	return left, nil
}
