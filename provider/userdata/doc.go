// Package userdata makes the script that turns a plain Linux machine into one of ours (PROV-7). A
// platform runs it as root at boot: as user data by cloud-init, or by hand.
//
// The script writes the bootstrap document where only root reads it, fetches the agent from the
// coordinators unless the image has one, checks it by its hash, and starts it as a service. It may
// run again, at each boot for example: nothing is done twice, and a download that was cut short is
// never installed.
package userdata
