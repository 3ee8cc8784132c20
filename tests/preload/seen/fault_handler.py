import faulthandler

print(faulthandler.is_enabled())
faulthandler.enable()
faulthandler.disable()
