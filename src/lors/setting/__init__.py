"""The setting: what one configuration works on."""
