package ec2test

import (
	"encoding/base64"
	"encoding/xml"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/amazon/amazontest"
)

type reservation struct {
	ID        string `xml:"reservationId"`
	Instances []item `xml:"instancesSet>item"`
}

type pair struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type reason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type stateOf struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

// item is a machine as lists have it.
type item struct {
	ID        string  `xml:"instanceId"`
	Image     string  `xml:"imageId"`
	State     stateOf `xml:"instanceState"`
	Type      string  `xml:"instanceType"`
	Launched  string  `xml:"launchTime"`
	Zone      string  `xml:"placement>availabilityZone"`
	Subnet    string  `xml:"subnetId,omitempty"`
	Address   string  `xml:"privateIpAddress,omitempty"`
	Token     string  `xml:"clientToken"`
	Lifecycle string  `xml:"instanceLifecycle,omitempty"`
	Reason    *reason `xml:"stateReason"`
	Tags      []pair  `xml:"tagSet>item"`
}

func (m *machine) stateOf() stateOf { return stateOf{m.state, stateNames[m.state]} }

func (m *machine) item(tagged bool) item {
	i := item{
		ID: m.id, Image: m.image, State: m.stateOf(), Type: m.typ,
		Launched: m.launched.UTC().Format("2006-01-02T15:04:05.000Z"),
		Zone:     m.s.config.Subnets[m.subnet].Zone, Token: m.token,
	}
	if m.spot {
		i.Lifecycle = "spot"
	}
	if m.state != terminated {
		i.Subnet, i.Address = m.subnet, m.address
	}
	if m.reason != "" {
		i.Reason = &reason{m.reason, m.message}
	}
	if tagged {
		for k, v := range m.tags {
			i.Tags = append(i.Tags, pair{k, v})
		}
		slices.SortFunc(i.Tags, func(a, b pair) int { return strings.Compare(a.Key, b.Key) })
	}
	return i
}

// matches reports whether one filter chooses a machine that is shown with these tags.
func (m *machine) matches(name string, values []string, tagged bool) (is bool, f *amazontest.Fault) {
	var have string
	key, ofTag := strings.CutPrefix(name, "tag:")
	switch {
	case ofTag:
		if is = tagged; is {
			have, is = m.tags[key], m.tags[key] != ""
		}
		return is && slices.Contains(values, have), nil
	case name == "instance-id":
		have = m.id
	case name == "client-token":
		have = m.token
	case name == "instance-state-name":
		have = stateNames[m.state]
	default:
		return false, amazontest.Refuse("InvalidParameterValue", "The filter '%s' is invalid", name)
	}
	return slices.Contains(values, have), nil
}

const maxFilterValues = 200

// describe is DescribeInstances. A page token is the last ID of the page before.
func (s *Server) describe(q *amazontest.Query) (any, *amazontest.Fault) {
	type filter struct {
		name   string
		values []string
	}
	var filters []filter
	for _, prefix := range q.Groups("Filter") {
		f := filter{q.Text(prefix + "Name"), q.List(prefix + "Value")}
		if len(f.values) == 0 || len(f.values) > maxFilterValues {
			return nil, amazontest.Refuse("FilterLimitExceeded", "The filter %s has %d values, and may have %d", f.name,
				len(f.values), maxFilterValues)
		}
		filters = append(filters, f)
	}
	most := q.Number("MaxResults")
	if most < 5 || most > 1000 {
		return nil, amazontest.Refuse("InvalidParameterValue", "MaxResults must be 5 to 1000")
	}
	if s.config.PageSize > 0 {
		most = min(most, s.config.PageSize)
	}
	after, err := base64.StdEncoding.DecodeString(q.Text("NextToken"))
	if err != nil {
		return nil, amazontest.Refuse("InvalidParameterValue", "Invalid value for NextToken")
	}
	if f := q.Done(); f != nil {
		return nil, f
	}
	var chosen []*machine
	tagged := func(m *machine) bool { return time.Since(m.made) >= s.config.TagLag }
next:
	for _, m := range s.machines {
		if m.id <= string(after) || time.Since(m.made) < s.config.Lag || m.state == terminated &&
			time.Since(m.since) > listedFor {
			continue
		}
		for _, f := range filters {
			is, fault := m.matches(f.name, f.values, tagged(m))
			if fault != nil {
				return nil, fault
			}
			if !is {
				continue next
			}
		}
		chosen = append(chosen, m)
	}
	slices.SortFunc(chosen, func(a, b *machine) int { return strings.Compare(a.id, b.id) })
	var out struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstancesResponse"`
		Set     struct {
			Items []reservation `xml:"item"`
		} `xml:"reservationSet"` // EC2 sends the element of an empty list too
		Next string `xml:"nextToken,omitempty"`
	}
	if len(chosen) > most {
		chosen = chosen[:most]
		out.Next = base64.StdEncoding.EncodeToString([]byte(chosen[most-1].id))
	}
	for _, m := range chosen {
		out.Set.Items = append(out.Set.Items, reservation{ID: "r-" + m.id[2:], Instances: []item{m.item(tagged(m))}})
	}
	return out, nil
}

// describeSubnets is DescribeSubnets.
func (s *Server) describeSubnets(q *amazontest.Query) (any, *amazontest.Fault) {
	type subnet struct {
		ID   string `xml:"subnetId"`
		Zone string `xml:"availabilityZone"`
		Free int    `xml:"availableIpAddressCount"`
	}
	var out struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeSubnetsResponse"`
		Subnets []subnet `xml:"subnetSet>item"`
	}
	for _, id := range q.List("SubnetId") {
		sub, is := s.config.Subnets[id]
		if !is {
			return nil, amazontest.Refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
		out.Subnets = append(out.Subnets, subnet{id, sub.Zone, sub.Free - s.used[id]})
	}
	return out, q.Done()
}

// describeImages is DescribeImages.
func (s *Server) describeImages(q *amazontest.Query) (any, *amazontest.Fault) {
	type image struct {
		ID   string `xml:"imageId"`
		Root string `xml:"rootDeviceName"`
	}
	var out struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeImagesResponse"`
		Images  []image  `xml:"imagesSet>item"`
	}
	for _, id := range q.List("ImageId") {
		root, is := s.config.Images[id]
		if !is {
			return nil, amazontest.Refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
		out.Images = append(out.Images, image{id, root})
	}
	return out, q.Done()
}
