package backup

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"filippo.io/age"
	"github.com/leasehold/leasehold/store"
)

// Format is the version of the file format that this program writes and reads.
const Format = 1

// Errors of an unusable file.
var (
	// ErrDamaged means that the file was shortened or changed, or is no backup.
	ErrDamaged = errors.New("the file is damaged or no backup")
	// ErrFormat means that a newer program has written the file.
	ErrFormat = errors.New("the file has a newer format than this program knows: upgrade it")
	// ErrEncrypted means that the file is encrypted, and no identity that can decrypt it was given.
	ErrEncrypted = errors.New("the file is encrypted, and no given identity decrypts it")
)

// magic identifies the format, and distinguishes a plain file from an encrypted one.
const (
	magic    = "leasehold-backup"
	ageMagic = "age-encryption.org/"
)

type header struct {
	Magic    string         `json:"file"`
	Format   int            `json:"format"`
	Shard    string         `json:"shard"`
	ShardID  string         `json:"shard_id"`
	At       time.Time      `json:"at"`
	Revision store.Revision `json:"revision"`
	Program  string         `json:"program"`
}

type line struct {
	Key      string          `json:"key"`
	Modified store.Revision  `json:"revision"`
	Value    json.RawMessage `json:"value,omitempty"` // as stored
	Bytes    []byte          `json:"bytes,omitempty"` // a value that JSON would not preserve byte for byte
}

type footer struct {
	Keys   int    `json:"keys"`
	SHA256 string `json:"sha256"` // of all earlier lines
}

// Write writes the file, encrypted if there are recipients.
func (c Content) Write(w io.Writer, recipients ...age.Recipient) error {
	closers := []io.Closer{}
	if len(recipients) > 0 {
		sealed, err := age.Encrypt(w, recipients...)
		if err != nil {
			return fmt.Errorf("encrypt backup: %w", err)
		}
		w, closers = sealed, append(closers, sealed)
	}
	zipped := gzip.NewWriter(w)
	closers = append(closers, zipped)
	sum := sha256.New()
	out := io.MultiWriter(zipped, sum)
	err := writeLine(out, header{magic, Format, c.Shard, c.ShardID, c.At, c.Revision, c.Program})
	for _, e := range c.Entries {
		if err == nil {
			err = writeLine(out, lineOf(e))
		}
	}
	if err == nil {
		err = writeLine(zipped, footer{len(c.Entries), hex.EncodeToString(sum.Sum(nil))})
	}
	for i := len(closers) - 1; i >= 0; i-- {
		err = errors.Join(err, closers[i].Close())
	}
	return err
}

func writeLine(w io.Writer, v any) error {
	_, err := w.Write(append(store.Encode(v), '\n'))
	return err
}

func lineOf(e Entry) line {
	l := line{Key: e.Key, Modified: e.Modified, Value: e.Value}
	if json.Valid(e.Value) {
		if written := store.Encode(l); bytes.Contains(written, append([]byte(`"value":`), e.Value...)) {
			return l
		}
	}
	return line{Key: e.Key, Modified: e.Modified, Bytes: e.Value}
}

// Read reads a file and checks that it is whole.
func Read(r io.Reader, identities ...age.Identity) (Content, error) {
	source := bufio.NewReader(r)
	if start, _ := source.Peek(len(ageMagic)); string(start) == ageMagic {
		if len(identities) == 0 {
			return Content{}, ErrEncrypted
		}
		opened, err := age.Decrypt(source, identities...)
		var no *age.NoIdentityMatchError
		switch {
		case errors.As(err, &no):
			return Content{}, ErrEncrypted
		case err != nil:
			return Content{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		source = bufio.NewReader(opened)
	}
	unzipped, err := gzip.NewReader(source)
	if err != nil {
		return Content{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	in := reader{lines: bufio.NewReader(unzipped), sum: sha256.New()}
	c, err := in.content()
	if errors.Is(err, ErrFormat) {
		return Content{}, err
	}
	if err != nil {
		return Content{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, nil
}

// reader reads the lines of a file.
type reader struct {
	lines *bufio.Reader
	sum   hash.Hash
}

func (r *reader) content() (Content, error) {
	var head header
	text, err := r.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	switch {
	case err != nil:
		return Content{}, fmt.Errorf("line 1: %w", err)
	case head.Magic != magic:
		return Content{}, fmt.Errorf("line 1: file: %q: must be %s", head.Magic, magic)
	case head.Format > Format:
		return Content{}, fmt.Errorf("%w (format %d, by %s)", ErrFormat, head.Format, head.Program)
	}
	r.sum.Write(text)
	c := Content{Shard: head.Shard, ShardID: head.ShardID, At: head.At, Revision: head.Revision, Program: head.Program}
	for {
		text, err := r.lines.ReadBytes('\n')
		if err != nil {
			return Content{}, fmt.Errorf("after %d keys: %w", len(c.Entries), err)
		}
		var l struct {
			line
			footer
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return Content{}, fmt.Errorf("after %d keys: %w", len(c.Entries), err)
		}
		if l.SHA256 != "" {
			return r.whole(c, l.footer)
		}
		r.sum.Write(text)
		value := []byte(l.Value)
		if l.Value == nil {
			value = l.Bytes
		}
		c.Entries = append(c.Entries, Entry{Key: l.Key, Value: value, Modified: l.Modified})
	}
}

// whole checks the end of the file.
func (r *reader) whole(c Content, end footer) (Content, error) {
	if sum := hex.EncodeToString(r.sum.Sum(nil)); sum != end.SHA256 || len(c.Entries) != end.Keys {
		return Content{}, fmt.Errorf("it has %d keys with checksum %.8s, and should have %d with %.8s", len(c.Entries),
			sum, end.Keys, end.SHA256)
	}
	switch n, err := io.Copy(io.Discard, r.lines); {
	case err != nil:
		return Content{}, fmt.Errorf("after its end: %w", err)
	case n != 0:
		return Content{}, fmt.Errorf("%d bytes after its end", n)
	}
	record, err := c.record()
	if err == nil && record.ID != c.ShardID {
		err = fmt.Errorf("the shard's ID is %s, and the header says %s", record.ID, c.ShardID)
	}
	c.Hold = record.Hold != nil
	return c, err
}
