package web

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
)

// targets serves Prometheus' HTTP service discovery (LB-4).
type targets struct{ replica Replica }

// target is a set of addresses with the same labels, in Prometheus' format.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// serve lists the instances in service: of ?group=NAME, which may be repeated, or of all groups.
// With ?port=N each has that port, whatever port its address has.
func (t targets) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	groups, port := query["group"], query.Get("port")
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		say(w, http.StatusBadRequest, "port: must be 1 to 65535")
		return
	}
	var endpoints []discovery.Endpoint
	unknown, incomplete := "", ""
	ready := t.replica.Cache().View(func(c *cache.Content) {
		endpoints = discovery.Endpoints(c, groups...)
		for _, g := range groups {
			if !discovery.Knows(c, g) {
				unknown = g
			}
		}
		of := groups
		if len(of) == 0 {
			of = discovery.Groups(c)
		}
		for _, g := range of {
			if discovery.Incomplete(c, g) {
				incomplete = g
			}
		}
	})
	switch {
	case !ready: // with an empty list the client would drop all targets
		say(w, http.StatusServiceUnavailable, "this replica has not read the shard yet")
		return
	case unknown != "":
		say(w, http.StatusNotFound, "no such group")
		return
	case incomplete != "": // the client would drop those that the list lacks
		say(w, http.StatusServiceUnavailable, "this replica does not know all instances of group "+incomplete+
			": records are damaged")
		return
	}
	list := make([]target, 0, len(endpoints))
	for _, e := range endpoints {
		list = append(list, target{Targets: []string{at(e.Address, port)}, Labels: map[string]string{
			"__meta_leasehold_group": e.Group, "__meta_leasehold_instance": e.Instance,
			"__meta_leasehold_slot": slotLabel(e.Slot), "__meta_leasehold_zone": e.Zone,
		}})
	}
	w.Header().Set("Content-Type", "application/json")
	heard, _ := t.replica.Cache().Heard()
	w.Header().Set("Age", strconv.Itoa(int(max(0, time.Since(heard)).Seconds())))
	_ = json.NewEncoder(w).Encode(list) // the client has gone
}

// at returns an address with another port, if one is given.
func at(address, port string) string {
	if port == "" {
		return address
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return net.JoinHostPort(host, port)
}

func slotLabel(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}
