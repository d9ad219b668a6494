-- What scripts find changed in Lua's library: output goes where the listing goes, in order with it; to exit ends the
-- run; objects of ours convert to numbers; what luaposix is used for in scripts of freedreno is there.
local emit, flush, leave, number_of, dirname, basename = ...

local error, select, setmetatable, tostring, type = error, select, setmetatable, tostring, type
local concat, format, number_type = table.concat, string.format, math.type
local open_output, file_type, close, plain_tonumber = io.output, io.type, io.close, tonumber

local methods = {}
local stdout = setmetatable({}, { __index = methods, __name = "FILE*", __tostring = function() return "file (stdout)" end })
local current = stdout

function methods:write(...)
	for i = 1, select("#", ...) do
		local value = select(i, ...)
		if type(value) == "string" then
			emit(value)
		elseif type(value) == "number" then
			emit(number_type(value) == "integer" and tostring(value) or format("%.14g", value))
		else
			error(format("bad argument #%d to 'write' (string expected, got %s)", i, type(value)), 2)
		end
	end
	return self
end

function methods:flush()
	flush()
	return self
end

function methods:close()
	flush()
	return true
end

function methods:setvbuf()
	return true
end

function methods:seek()
	return nil, "Illegal seek", 29
end

function methods:read()
	return nil, "Bad file descriptor", 9
end

io.stdout = stdout

function io.output(file)
	if file == stdout then
		current = stdout
	elseif file ~= nil then
		current = open_output(file)
	end
	return current
end

function io.write(...)
	return current:write(...)
end

function io.close(file)
	file = file or current
	if file == stdout then
		return stdout:close()
	end
	return close(file)
end

function io.type(value)
	return value == stdout and "file" or file_type(value)
end

function print(...)
	local parts = {}
	for i = 1, select("#", ...) do
		parts[i] = tostring((select(i, ...)))
	end
	emit(concat(parts, "\t") .. "\n")
end

function tonumber(...)
	if select("#", ...) == 1 and type((...)) == "userdata" then
		return number_of((...))
	end
	return plain_tonumber(...)
end

function os.exit(status)
	leave(status == nil or status == true and 0 or status == false and 1 or status)
end

package.preload.posix = function()
	return { basename = basename, dirname = dirname }
end
