package js

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/bits"

	"github.com/luanette/luanette/internal/base/fault"
)

// Session is a persistent realm: what a script defines at the top level is available to
// the next one. Between evaluations a session is an image of memory, tens of kilobytes that
// differ from an empty realm. It holds an instance of the engine only while a script runs.
// It is used by one goroutine at a time, and need not be closed.
//
// A script that is stopped, by its limits or by its context, leaves the session unchanged.
// A script that fails keeps the changes it made before the error.
type Session struct {
	engine *Engine
	image  *image     // nil means the template: nothing has run yet
	maps   sourceMaps // of sources whose functions may still exist
	turns  int        // evaluations that were not stopped
}

// NewSession makes an empty session.
func (e *Engine) NewSession() *Session { return &Session{engine: e} }

// Eval runs a program in the session. Variables may be declared again. Variables of a
// program that returns at the top level are local to it. A program without a name is called
// "eval-3.js", by its number.
func (s *Session) Eval(ctx context.Context, program Program, host Host) (Outcome, error) {
	m, err := s.engine.enter(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer s.engine.underway.done()
	img := cmp.Or(s.image, m.template)
	if program.Name == "" {
		program.Name = fmt.Sprintf("eval-%d.js", s.turns+1)
	}
	r := &run{program: &program, host: host, maps: sourceMaps{}, redeclare: true}
	maps.Copy(r.maps, s.maps)
	outcome, left, err := s.engine.execute(ctx, m, img, r, true)
	if left != nil {
		s.image, s.maps = left, r.maps
		s.turns++
	}
	return outcome, err
}

// Turns returns the number of evaluations that were not stopped.
func (s *Session) Turns() int { return s.turns }

// A snapshot is a header, then the session compressed: the length of its notes as JSON, the
// notes, the size of memory, and each page preceded by its index. The header has the build
// of the engine and the checksum of what follows: memory that changed on a disk would be a
// session in which values are silently wrong.
const (
	snapshotMagic = "LNJS\x02"
	checksumSize  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot returns the session as bytes. An engine built from the same module and prelude
// can restore them, in any process.
func (s *Session) Snapshot(ctx context.Context) ([]byte, error) {
	m, err := s.engine.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.engine.underway.done()
	var b bytes.Buffer
	b.WriteString(snapshotMagic)
	b.Write(m.fingerprint[:])
	head := b.Len()
	b.Write(make([]byte, checksumSize))
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.write(w, cmp.Or(s.image, &image{size: m.template.size})), w.Close()); err != nil {
		return nil, fmt.Errorf("save the session: %w", err)
	}
	sum := crc32.Checksum(b.Bytes()[head+checksumSize:], castagnoli)
	binary.LittleEndian.PutUint32(b.Bytes()[head:], sum)
	return b.Bytes(), nil
}

// notes are the data of a session other than its memory.
type notes struct {
	Maps  sourceMaps `json:"maps"`
	Turns int        `json:"turns"`
}

func (s *Session) write(w io.Writer, img *image) error {
	known, err := json.Marshal(notes{s.maps, s.turns})
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(known)))
	head = append(head, known...)
	head = binary.LittleEndian.AppendUint64(head, img.size)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(img.pages)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, p := range img.pages {
		index := binary.LittleEndian.AppendUint32(nil, p.index)
		if _, err := w.Write(append(index, p.data...)); err != nil {
			return err
		}
	}
	return nil
}

// Fits reports whether this build of the engine made the snapshot, and nothing changed it.
func (e *Engine) Fits(ctx context.Context, snapshot []byte) (bool, error) {
	m, err := e.enter(ctx)
	if err != nil {
		return false, err
	}
	defer e.underway.done()
	_, err = m.open(snapshot)
	return err == nil, nil
}

// Restore makes a session from a snapshot. It returns an error if the bytes are not an
// unchanged snapshot, or if another build of the engine made them.
func (e *Engine) Restore(ctx context.Context, snapshot []byte) (*Session, error) {
	m, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.underway.done()
	body, err := m.open(snapshot)
	if err != nil {
		return nil, err
	}
	s := e.NewSession()
	if err := s.read(flate.NewReader(bytes.NewReader(body)), m); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "restore a session")
	}
	return s, nil
}

// open returns the compressed session of a snapshot.
func (m *machine) open(snapshot []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(snapshot, []byte(snapshotMagic))
	if !ok || len(rest) < len(m.fingerprint)+checksumSize {
		return nil, fault.New(fault.InvalidParams, "restore a session: the bytes are not a snapshot of this version")
	}
	made, rest := rest[:len(m.fingerprint)], rest[len(m.fingerprint):]
	if !bytes.Equal(made, m.fingerprint[:]) {
		return nil, fault.New(fault.Conflict, "restore a session: the snapshot was made by another build of the JavaScript engine").
			WithHint("start a new session: only the build that made a snapshot can restore it")
	}
	sum, body := binary.LittleEndian.Uint32(rest), rest[checksumSize:]
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fault.New(fault.Conflict, "restore a session: the snapshot was changed after it was saved").
			WithHint("reset the session, or restore the database from a backup")
	}
	return body, nil
}

// read reads what write wrote. It validates everything.
func (s *Session) read(r io.Reader, m *machine) error {
	var length uint32
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return err
	}
	const longest = 16 << 20
	if length > longest {
		return errors.New("broken notes")
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	var known notes
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}
	s.maps, s.turns = known.Maps, known.Turns
	var head struct {
		Size  uint64
		Pages uint32
	}
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return err
	}
	if head.Size < m.template.size || head.Size > m.limit || head.Size%wasmPage != 0 || head.Pages > pageCount(head.Size) {
		return fmt.Errorf("memory of %d bytes does not fit", head.Size)
	}
	s.image = &image{size: head.Size}
	return s.image.readPages(r, head.Pages)
}

func (img *image) readPages(r io.Reader, count uint32) error {
	for next := uint32(0); count > 0; count-- {
		p := page{data: make([]byte, pageSize)}
		if err := binary.Read(r, binary.LittleEndian, &p.index); err != nil {
			return err
		}
		if p.index < next || p.index >= pageCount(img.size) {
			return errors.New("pages out of order")
		}
		if _, err := io.ReadFull(r, p.data); err != nil {
			return err
		}
		img.pages = append(img.pages, p)
		next = p.index + 1
	}
	return nil
}

const pageSize = 4 << 10

// image is the memory of an idle instance, as its differences from the template. It is
// immutable: sessions, forks and snapshots share images and their pages.
type image struct {
	size  uint64 // of the whole memory
	pages []page // ascending
	full  []byte // all bytes; only of the template
}

// page is one page that differs: pageSize bytes at index*pageSize.
type page struct {
	index uint32
	data  []byte
}

var zeroPage [pageSize]byte

// captureTemplate copies the whole memory. Its pages are those that are not all zero.
func captureTemplate(in *instance) *image {
	clear(in.view(in.stackFloor, stackSize))
	t := &image{size: in.memory.size, full: bytes.Clone(in.memory.bytes())}
	for i := range pageCount(t.size) {
		if data := t.full[i*pageSize : (i+1)*pageSize]; !bytes.Equal(data, zeroPage[:]) {
			t.pages = append(t.pages, page{i, data})
		}
	}
	return t
}

func pageCount(size uint64) uint32 { return uint32(size / pageSize) }

// page returns the template's bytes of a page: zero beyond its end.
func (t *image) page(index uint32) []byte {
	if index >= pageCount(t.size) {
		return zeroPage[:]
	}
	return t.full[index*pageSize : (index+1)*pageSize]
}

// capture copies what differs from the template. Nothing may be running: then the C
// stack is empty and is left out. Pages equal to those of before are shared with it.
func (t *image) capture(in *instance, before *image) *image {
	memory := in.memory.bytes()
	img := &image{size: in.memory.size}
	old := before.pages
	for i := range pageCount(img.size) {
		if at := i * pageSize; at >= in.stackFloor && at+pageSize <= in.stackTop {
			continue
		}
		data := memory[i*pageSize : (i+1)*pageSize]
		if bytes.Equal(data, t.page(i)) {
			continue
		}
		for len(old) > 0 && old[0].index < i {
			old = old[1:]
		}
		if len(old) > 0 && old[0].index == i && bytes.Equal(old[0].data, data) {
			img.pages = append(img.pages, old[0])
		} else {
			img.pages = append(img.pages, page{i, bytes.Clone(data)})
		}
	}
	return img
}

// scrub overwrites free memory with zeros, so that an image does not contain freed data.
// It allocates all large free blocks, which zeroes them, and frees them again; memory
// does not grow. Small heaps are not worth it.
func (in *instance) scrub(ctx context.Context, template *image) error {
	const worth, smallest = 1 << 20, 16 << 10
	if in.memory.size < template.size+worth {
		return nil
	}
	limit, refused := in.memory.limit, in.memory.refused
	in.memory.limit = in.memory.size
	defer func() { in.memory.limit, in.memory.refused = limit, refused }()
	var taken []uint64
	for block := uint64(1) << (bits.Len64(in.memory.size) - 1); block >= smallest; {
		at, err := in.call(ctx, fnCalloc, 1, block)
		if err != nil {
			return err
		}
		if at == 0 {
			block /= 2
			continue
		}
		taken = append(taken, at)
	}
	for _, at := range taken {
		if _, err := in.call(ctx, fnFree, at); err != nil {
			return err
		}
	}
	return nil
}

// fill gives a new instance the template's memory. Its own memory is zero except for
// what the module initialized.
func (m *machine) fill(in *instance) error {
	if err := in.grow(m.template.size); err != nil {
		return err
	}
	m.template.overlay(in.memory.bytes())
	return nil
}

// wipe resets a used instance, which must have the template's size. Most pages are
// unchanged and only read, which takes a third of the time of writing them all; memory
// that was never touched stays so.
func (m *machine) wipe(in *instance) {
	memory, same := in.memory.bytes(), m.template.pages
	for i := range pageCount(m.template.size) {
		want := zeroPage[:]
		if len(same) > 0 && same[0].index == i {
			want, same = same[0].data, same[1:]
		}
		if page := memory[i*pageSize : (i+1)*pageSize]; !bytes.Equal(page, want) {
			copy(page, want)
		}
	}
}

// restore fills an instance that has the template's memory with an image.
func (m *machine) restore(in *instance, img *image) error {
	if img != m.template {
		if err := in.grow(img.size); err != nil {
			return err
		}
		img.overlay(in.memory.bytes())
	}
	in.handles = m.handles
	in.memory.refused, in.memory.denied = false, nil
	in.setStack()
	return nil
}

func (img *image) overlay(memory []byte) {
	for _, p := range img.pages {
		copy(memory[int(p.index)*pageSize:], p.data)
	}
}

// grow makes the memory size bytes large.
func (in *instance) grow(size uint64) error {
	if in.memory.size >= size {
		return nil
	}
	if _, ok := in.module.Memory().Grow(uint32((size - in.memory.size) / wasmPage)); !ok {
		return errNoGuestMemory
	}
	return nil
}
