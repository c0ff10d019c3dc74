package libvirt

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

// The suffixes of a machine's volumes.
const (
	rootSuffix    = ".root.qcow2"
	dataSuffix    = ".data.qcow2"
	seedSuffix    = ".seed.iso"
	consoleSuffix = ".console.log"
)

var suffixes = []string{rootSuffix, dataSuffix, seedSuffix, consoleSuffix}

// volume is one that a machine has for itself.
type volume struct {
	name, format string
	capacity     uint64
	backing      *backingXML
	content      []byte // of a seed
}

// pools are the kinds of pool whose volumes are files of one directory.
var pools = []string{"dir", "fs", "netfs"}

// poolOf finds a storage pool and its directory.
func poolOf(l *link, name string) (pool api.StoragePool, dir string, err error) {
	pool, err = l.StoragePoolLookupByName(name)
	if is(err, api.ErrNoStoragePool) {
		return pool, "", fmt.Errorf("the hypervisor has no storage pool %s: virsh pool-define-as %s dir --target DIRECTORY: "+
			"%w", name, name, err)
	}
	if err != nil {
		return pool, "", err
	}
	text, err := l.StoragePoolGetXMLDesc(pool, 0)
	if err != nil {
		return pool, "", err
	}
	var x poolXML
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return pool, "", fmt.Errorf("read the description of storage pool %s: %w", name, err)
	}
	if !slices.Contains(pools, x.Type) || x.Target.Path == "" {
		return pool, "", &provider.Error{Kind: provider.Invalid, Message: fmt.Sprintf(
			"storage pool %s is of the type %s: machines need one with files in a directory (%s)", name, x.Type,
			strings.Join(pools, ", "))}
	}
	return pool, x.Target.Path, nil
}

// refresh has libvirt look at a pool's directory. It refuses while it makes a volume there.
func refresh(ctx context.Context, l *link, pool api.StoragePool) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := l.StoragePoolRefresh(pool, 0)
		if !says(err, "asynchronous jobs running") {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// file looks whether a pool has a volume that a template names. One that was copied into the
// directory by hand shows after a refresh.
func file(ctx context.Context, l *link, pool api.StoragePool, name string) (x volumeXML, err error) {
	v, err := l.StorageVolLookupByName(pool, name)
	if is(err, api.ErrNoStorageVol) {
		if err = refresh(ctx, l, pool); err == nil {
			v, err = l.StorageVolLookupByName(pool, name)
		}
	}
	if is(err, api.ErrNoStorageVol) {
		return x, &provider.Error{Kind: provider.Invalid, Message: fmt.Sprintf("storage pool %s has no volume %s", pool.Name,
			name)}
	}
	if err != nil {
		return x, err
	}
	text, err := l.StorageVolGetXMLDesc(v, 0)
	if err != nil {
		return x, err
	}
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return x, fmt.Errorf("read the description of volume %s: %w", name, err)
	}
	return x, nil
}

// make makes a volume. One that is there was made by an earlier try, for a machine that has not
// started yet: it is what this one would be, but for its content.
func (v volume) make(l *link, pool api.StoragePool) error {
	x := volumeXML{Name: v.name, Capacity: v.capacity, Backing: v.backing}
	x.Target.Format.Type = v.format
	x.Target.Permissions = &permissionsXML{"0600"}
	text, err := xml.Marshal(x)
	if err != nil {
		return err
	}
	made, err := l.StorageVolCreateXML(pool, string(text), 0)
	if is(err, api.ErrStorageVolExist) {
		made, err = l.StorageVolLookupByName(pool, v.name)
	}
	if err == nil && v.content != nil {
		err = l.StorageVolUpload(made, bytes.NewReader(v.content), 0, uint64(len(v.content)), 0)
	}
	if err != nil {
		return fmt.Errorf("make volume %s: %w", v.name, err)
	}
	return nil
}

// clear deletes a machine's volumes, by their whole names: an operator's copies of them may have
// the domain's name too.
func clear(ctx context.Context, l *link, poolName, name string) error {
	pool, err := l.StoragePoolLookupByName(poolName)
	if is(err, api.ErrNoStoragePool) {
		return nil // and with it all that it had
	}
	if err == nil {
		err = refresh(ctx, l, pool) // to see console logs
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, suffix := range suffixes {
		if err := deleteVolume(l, poolName, name+suffix); err != nil {
			errs = append(errs, fmt.Errorf("delete volume %s: %w", name+suffix, err))
		}
	}
	return errors.Join(errs...)
}

func deleteVolume(l *link, poolName, name string) error {
	pool, err := l.StoragePoolLookupByName(poolName)
	var v api.StorageVol
	if err == nil {
		v, err = l.StorageVolLookupByName(pool, name)
	}
	if err == nil {
		err = l.StorageVolDelete(v, 0)
	}
	if is(err, api.ErrNoStoragePool, api.ErrNoStorageVol) {
		return nil
	}
	return err
}
