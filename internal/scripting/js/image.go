package js

import (
	"bytes"
	"context"
	"math/bits"
)

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

// bytes returns the memory that the image takes, including shared pages.
func (img *image) bytes() int { return len(img.pages) * pageSize }
