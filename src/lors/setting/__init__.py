"""What one configuration works on: data, encoders, device, networks by seed."""

from lors.setting.resolve import resolve
from lors.setting.setting import Setting, setting_of

__all__ = ["Setting", "resolve", "setting_of"]
