"""The commands, as people and init systems start them."""
