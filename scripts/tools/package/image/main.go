// Command image writes a container image with two programs as an OCI layout, for several
// architectures. The same programs give the same bytes.
//
//	image -out DIR -version VERSION amd64=DIR arm64=DIR
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is whom the programs run as.
const user = 65532

func main() {
	out := flag.String("out", "", "directory of the layout")
	version := flag.String("version", "", "version of the programs")
	epoch := flag.Int64("epoch", 0, "time of everything in the image, in seconds since 1970")
	flag.Parse()
	if err := write(*out, *version, time.Unix(*epoch, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(out, version string, at time.Time, sources []string) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, source := range sources {
		arch, dir, _ := strings.Cut(source, "=")
		image, err := imageOf(arch, dir, version, at)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	into, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	return into.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version}))
}

func imageOf(arch, dir, version string, at time.Time) (v1.Image, error) {
	content, err := files(dir, at)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	c, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", arch, v1.Time{Time: at}
	c.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/leasehold"}, User: fmt.Sprint(user), WorkingDir: "/var/lib/leasehold",
		Env:     []string{"PATH=/usr/bin"},
		Volumes: map[string]struct{}{"/var/lib/leasehold": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "leasehold",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.source":   "https://github.com/leasehold/leasehold",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, c)
}

// files is the file system of the image: two static programs, their user and a directory of theirs.
func files(dir string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, data []byte) error {
		h.Size, h.ModTime, h.Format = int64(len(data)), at, tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for _, name := range []string{"etc/", "usr/", "usr/bin/", "var/", "var/lib/"} {
		if err := add(tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}, nil); err != nil {
			return nil, err
		}
	}
	own := tar.Header{Name: "var/lib/leasehold/", Typeflag: tar.TypeDir, Mode: 0o750, Uid: user, Gid: user}
	if err := add(own, nil); err != nil {
		return nil, err
	}
	users := fmt.Sprintf("root:x:0:0::/root:\nleasehold:x:%d:%d::/var/lib/leasehold:\n", user, user)
	if err := add(tar.Header{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644}, []byte(users)); err != nil {
		return nil, err
	}
	for _, name := range []string{"leasehold", "leasehold-agent"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if err := add(tar.Header{Name: "usr/bin/" + name, Typeflag: tar.TypeReg, Mode: 0o755}, data); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}
