package js

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
)

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
// can restore them, in any process. If an evaluation is in progress, the snapshot has the
// state before it.
func (s *Session) Snapshot(ctx context.Context) ([]byte, error) {
	m, err := s.engine.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.engine.underway.done()
	now := s.now()
	if now.image == nil {
		now.image = &image{size: m.template.size}
	}
	var b bytes.Buffer
	b.WriteString(snapshotMagic)
	b.Write(m.fingerprint[:])
	head := b.Len()
	b.Write(make([]byte, checksumSize))
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(now.write(w), w.Close()); err != nil {
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

func (s state) write(w io.Writer) error {
	known, err := json.Marshal(notes{s.maps, s.turns})
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(known)))
	head = append(head, known...)
	head = binary.LittleEndian.AppendUint64(head, s.image.size)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(s.image.pages)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, p := range s.image.pages {
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
	s, err := readState(flate.NewReader(bytes.NewReader(body)), m)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "restore a session")
	}
	return newSession(e, s), nil
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

// readState reads what write wrote. It validates everything.
func readState(r io.Reader, m *machine) (state, error) {
	var s state
	var length uint32
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return s, err
	}
	const longest = 16 << 20
	if length > longest {
		return s, errors.New("broken notes")
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return s, err
	}
	var known notes
	if err := json.Unmarshal(text, &known); err != nil {
		return s, err
	}
	s.maps, s.turns = known.Maps, known.Turns
	var head struct {
		Size  uint64
		Pages uint32
	}
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return s, err
	}
	if head.Size < m.template.size || head.Size > m.limit || head.Size%wasmPage != 0 || head.Pages > pageCount(head.Size) {
		return s, fmt.Errorf("memory of %d bytes does not fit", head.Size)
	}
	s.image = &image{size: head.Size}
	return s, s.image.readPages(r, head.Pages)
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
