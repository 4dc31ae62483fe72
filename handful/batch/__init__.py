"""Files of any size: fitted, answered, scored, resumed, spread over workers."""
